"""What an installation must be able to do, tried from outside the clone: python tests/smoke.py"""

import subprocess
import sys
import tempfile
from pathlib import Path

import scb

COMMANDS = (
    "train --T 100 --out runs/train",
    "show runs/train",
    "fit poem.txt --max-lag 4 --out runs/fit",
    "show runs/fit",
    "sample runs/fit --length 20",
    "plan 3 5000 2",
    "lab --out lab.html",
)


def main():
    """Fit in Python, then run the commands that need no extra; the first failure ends it."""
    assert Path(__file__).parents[1] / "src" not in Path(scb.__file__).parents, "the clone is imported, not an installation"
    model = scb.SparseContextualBigram(max_lag=4).fit(list("abcabcaab" * 400))
    assert len(model.sample(5)) == 5
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "poem.txt").write_text("abcabcaab" * 400)
        for command in COMMANDS:
            print(f"scb {command}", flush=True)
            subprocess.run([sys.executable, "-m", "scb", *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for made in ("runs/train/run.safetensors", "runs/fit/model.safetensors", "lab.html"):
            assert Path(folder, made).stat().st_size > 1000, made
    print(f"scb {scb.__version__} works on Python {sys.version.split()[0]}, {sys.platform}")


if __name__ == "__main__":
    main()
