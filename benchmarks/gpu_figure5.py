"""Draw ``benchmarks/gpu/figure5.csv``: real gradients at the sizes that the paper simulated, beside the simulation."""

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent
PANELS = (("alpha_V", "α_V"), ("alpha_A", "α_A"), ("delta_V", "‖Δ_V‖"), ("delta_A", "‖Δ_A‖"))


def main() -> None:
    """One row a run: signals and errors over steps."""
    with (HERE / "gpu" / "figure5.csv").open() as file:
        rows = list(csv.DictReader(file))
    runs = list(dict.fromkeys((row["N"], row["method"]) for row in rows))
    figure = Figure(figsize=(11, 2.4 * len(runs)), layout="constrained")
    axes = figure.subplots(len(runs), len(PANELS), squeeze=False)
    for line, (N, method) in zip(axes, runs, strict=True):
        mine = [row for row in rows if (row["N"], row["method"]) == (N, method)]
        for ax, (name, label) in zip(line, PANELS, strict=True):
            for seed in range(5):
                one = [row for row in mine if row["gradients"] == "simulated" and row["seed"] == str(seed)]
                ax.plot(*_curve(one, name), color="C1", lw=0.8, alpha=0.7, label="simulated, five seeds" if seed == 0 else None)
            ax.plot(*_curve([row for row in mine if row["gradients"] == "real"], name), "k--", lw=1.2, label="real gradients")
            ax.set_title(label, fontsize=9)
            if name.startswith("delta"):
                ax.set_yscale("log")
        line[0].set_ylabel(f"{method}\nN = {N}, B = {int(mine[0]['batch_size']):,}", fontsize=8)
    axes[0, 0].legend(fontsize=7)
    figure.savefig(HERE.parent / "docs" / "images" / "gpu-figure5.png", dpi=110)


def _curve(rows: list[dict[str, str]], name: str) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([(float(row["step"]), float(row[name])) for row in rows])
    return values[:, 0], np.where(values[:, 1] == 0, np.nan, values[:, 1])


if __name__ == "__main__":
    main()
