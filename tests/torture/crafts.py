"""What a malicious hand does to a file of scb: one or two changes inside, and the digest made right again."""

import io
import json
import random
import re
from typing import Any
from zipfile import ZipFile

import numpy as np

from scb.files import SLOT, seal

DEEP = "@deep@"  # stands in JSON for brackets that no encoder would nest so deep
SEAL = re.compile(rb"scb-sha256:[0-9a-f]{64}")
HOSTILE: tuple[Any, ...] = (
    *(-1, 0, 1, 63, 10**6, 10**9, 10**12, 2**31, 2**63, 2**64, 10**30, -(10**30)),
    *(1e308, -0.5, float("nan"), float("inf"), None, True, "", "x", "x" * 5000, "../../secret", "\0"),
    *("\x1b[31mred\x1b]0;title\x07", "=1+1", "\ud800", "<U999999999", "V999999999", "O", "f8"),
    *([], {}, [[[[]]]], ["\x1b[2J"], {"x": 1}, list(range(1000)), DEEP),
)
SHAPES = ([], [0], [1], [2**40], [2**40, 2**40], [-1], [1, 1, 1], [3, 3], "x", None)
DTYPES = ("F64", "I64", "U8", "BOOL", "F16", "X", 3)
NUMBERS = (0, 1, -1, 2, 3, 63, 10**6, 10**12, 2**62, np.nan, np.inf, -np.inf, 1e308, 0.5)


def change(rng: random.Random, suffix: str, content: bytes) -> tuple[bytes, str]:
    """The content of a file after one or two changes, sealed, and what was changed in words."""
    if rng.random() < 0.03:
        return content + b"scb-sha256:" + b"scb-sha256:".join([b"0" * 64] * 60_000), "fake seals"
    words: list[str] = []
    found = CHANGES[suffix](rng, SEAL.sub(SLOT.encode(), content), words)
    try:
        return seal(found), ", ".join(words)
    except ValueError:  # the place of the digest is what was changed
        return found, ", ".join(words) + ", unsealed"


def spoil(rng: random.Random, value: Any, words: list[str]) -> Any:
    """JSON with something hostile in place of one of its values, or without that."""
    if isinstance(value, dict | list) and value and (not words or rng.random() < 0.9):
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        words.append(str(key)[:20])
        if rng.random() < 0.1:
            words.append("gone")
            del value[key]
        elif key != "digest":
            value[key] = spoil(rng, value[key], words)
        return value
    hostile = rng.choice(HOSTILE)
    words.append(f"= {hostile!r:.20}")
    return hostile


def _dumped(value: Any) -> str:
    text = json.dumps(value)
    return text.replace(f'"{DEEP}"', "[" * 50_000 + "]" * 50_000)


def _json(rng: random.Random, content: bytes, words: list[str]) -> bytes:
    return _dumped(spoil(rng, json.loads(content), words)).encode()


def _numbers(rng: random.Random, array: np.ndarray, words: list[str]) -> np.ndarray:
    """An array with another number in a place, or in all."""
    changed = np.array(array, order="C")
    number = rng.choice(NUMBERS)
    place = rng.randrange(array.size) if array.size and rng.random() < 0.8 else slice(None)
    words.append(f"[{place}] = {number}")
    with np.errstate(all="ignore"):
        changed.reshape(-1)[place] = np.array(number).astype(array.dtype)
    return changed


def _safetensors(rng: random.Random, content: bytes, words: list[str]) -> bytes:
    """Facts, a tensor's numbers, or what is said of its dtype, shape and place."""
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    what = rng.choice(("facts", "facts", "numbers", "header"))
    name = rng.choice([name for name in header if name != "__metadata__"])
    if what == "facts":
        said = json.loads(header["__metadata__"]["scb"])
        said["facts"] = spoil(rng, said["facts"], words)
        header["__metadata__"]["scb"] = _dumped(said)
    elif what == "numbers":
        words.append(name)
        begin, end = header[name]["data_offsets"]
        kind = {"F64": np.float64, "I64": np.int64}.get(header[name]["dtype"], np.uint8)
        found = _numbers(rng, np.frombuffer(data[begin:end], kind), words)
        data = data[:begin] + found.tobytes() + data[end:]
    elif rng.random() < 0.3:
        words.append(f"without {name}")
        del header[name]
    else:
        field = rng.choice(("shape", "dtype", "data_offsets"))
        choices = {"shape": SHAPES, "dtype": DTYPES, "data_offsets": ([0, 0], [0, 2**60], [-1, 8], [8, 0])}
        header[name][field] = rng.choice(choices[field])
        words.append(f"{name} {field} {header[name][field]}")
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def _npz(rng: random.Random, content: bytes, words: list[str]) -> bytes:
    """Numbers, dtypes and shapes of an archive, a member that lies about its shape, or one less."""
    with ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    name = rng.choice(list(members))
    words.append(name)
    array = np.load(io.BytesIO(members[name]))
    what = rng.choice(("numbers", "numbers", "type", "shape", "lie", "gone"))
    words.append(what)
    if what == "lie":
        size = rng.choice((b"99999999999", b"-1", b"0"))
        members[name] = re.sub(rb"'shape': \([^)]*\)", b"'shape': (" + size + b",)", members[name])
    elif what == "gone":
        del members[name]
    else:
        if what == "numbers":
            array = _numbers(rng, array, words)
        elif what == "type":
            array = array.astype(rng.choice(("U5", "i1", "c16", "M8[s]", "?")))
        else:
            array = rng.choice((array.reshape(-1), array[None], array[..., :0] if array.ndim else array))
        buffer = io.BytesIO()
        np.save(buffer, array)
        members[name] = buffer.getvalue()
    made = io.BytesIO()
    with ZipFile(made, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.comment = SLOT.encode()
    return made.getvalue()


def _parquet(rng: random.Random, content: bytes, words: list[str]) -> bytes:
    """Facts of a table, or a column of it: other values, another type, none, a name with codes."""
    import pyarrow as pa
    from pyarrow.parquet import read_table, write_table

    table = read_table(pa.BufferReader(content))
    facts = json.loads(table.schema.metadata[b"scb"])
    columns = {name: table[name].to_pylist() for name in table.column_names}
    name = rng.choice(list(columns))
    what = rng.choice(("facts", "value", "gone", "name", "rows"))
    words.append(f"{what} {name}")
    if what == "facts":
        facts = spoil(rng, facts, words)
    elif what == "value":
        hostile = rng.choice((*NUMBERS, "x", "\x1b[31m", None, [[1]], {"a": 1}, b"\xff", True))
        words.append(f"= {hostile!r}")
        columns[name] = [hostile] * table.num_rows
    elif what == "gone":
        del columns[name]
    elif what == "name":
        columns["\x1b[31m" + name] = columns.pop(name)
    else:
        times = rng.choice((0, 2))
        columns = {name: column * times for name, column in columns.items()}
    made = io.BytesIO()
    metadata = {"scb": _dumped(facts), "digest": SLOT}
    write_table(pa.table(columns).replace_schema_metadata(metadata), made)
    return made.getvalue()


def _toml(rng: random.Random, content: bytes, words: list[str]) -> bytes:
    """One value of a line."""
    lines = content.decode().splitlines()
    place = rng.choice([i for i, line in enumerate(lines) if " = " in line])
    key, _, _ = lines[place].partition(" = ")
    tokens = ("-1", "0", "10**9", "1000000000000", "nan", "inf", '""', '"\\u001b[31m"', "[]", "{}", "true")
    more = ("[1000000000]", "[nan]", "[" * 3000 + "]" * 3000, "9" * 400, '"' + "x" * 5000 + '"')
    lines[place] = f"{key} = {rng.choice((*tokens, *more))}"
    words.append(lines[place][:40])
    return "\n".join([*lines, ""]).encode()


CHANGES = {".json": _json, ".safetensors": _safetensors, ".npz": _npz, ".parquet": _parquet, ".toml": _toml}
