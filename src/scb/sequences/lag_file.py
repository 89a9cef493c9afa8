"""Lag models on disk: one file of arrays, and everything else as JSON in its header (safetensors; nothing is executed)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from scipy.sparse import csr_array

from scb.files import write_atomically
from scb.provenance import versions
from scb.sequences.lag_model import FitFacts, LagModel

FORMAT = "scb.SparseContextualBigram"


def save_model(path: str | Path, model: LagModel, facts: FitFacts, parameters: dict[str, Any], width: int | None) -> None:
    """Write a model, how its fit went, the parameters of its estimator and the common length of its sequences."""
    a = model.attention
    arrays = {
        "attention": a.data,
        "stderr": model.errors.data,
        "prior": model.prior,
        "frequencies": model.frequencies,
        "columns": a.indices.astype(np.int64),
        "bounds": a.indptr.astype(np.int64),
    }
    arrays |= {f"transition.{lag}": np.ascontiguousarray(P) for lag, P in model.matrices.items()}
    lags = parameters["lags"]
    header = {
        "format": FORMAT,
        "versions": versions(),
        "parameters": parameters
        | {"lags": lags if isinstance(lags, str) else np.asarray(lags).tolist(), "max_lag": int(model.max_lag)},
        "classes": model.classes.tolist(),
        "kind": model.classes.dtype.str,
        "fit": {f"{name}_": value for name, value in asdict(facts).items()},
        "n_features_in": width,
    }
    # One entry in the header: safetensors does not fix the order of several.
    write_atomically(Path(path), save(arrays, {"scb": json.dumps(header)}))


def load_model(path: str | Path) -> tuple[LagModel, FitFacts, dict[str, Any], int | None]:
    """Read what ``save_model`` wrote; a ValueError says what is wrong with the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there, or not a file")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged, or not a saved model ({error})") from None
    if FORMAT not in header.get("scb", ""):
        raise ValueError(f"{path} holds no {FORMAT.partition('.')[2]}: it was written by something else")
    try:
        content = json.loads(header["scb"])
        facts = FitFacts(**{name.removesuffix("_"): value for name, value in content["fit"].items()})
        return _model(arrays, content), facts, content["parameters"], content["n_features_in"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None


def _model(arrays: dict[str, Any], content: dict[str, Any]) -> LagModel:
    shape = len(arrays["bounds"]) - 1, content["parameters"]["max_lag"]
    where = arrays["columns"], arrays["bounds"]
    matrices = {int(name.split(".")[1]): P for name, P in arrays.items() if name.startswith("transition.")}
    return LagModel(
        classes=np.array(content["classes"], dtype=content["kind"]),
        context=content["parameters"]["context"],
        attention=csr_array((arrays["attention"], *where), shape=shape),
        errors=csr_array((arrays["stderr"], *where), shape=shape),
        matrices=dict(sorted(matrices.items())),
        prior=arrays["prior"],
        frequencies=arrays["frequencies"],
    )
