"""Is FS of the scoreboard the FS of hdMTD? A comparison on the package's own samples.

    python benchmarks/scoreboard/published.py simulated_data.rds [--package 8]

Needs R with the package hdMTD, and the file `simulated_data.rds` of the paper's replication
material (arXiv 2509.01808), which has the lags that were chosen for each of 100 samples. R draws
the same samples from the paper's seed. With --package, the package itself is run on the first
samples and timed: a quarter of a minute for each.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent))

from study import rewrite

from estimators.forward_stepwise import cut, forward_stepwise
from frame import HERE

SIZES = (1000, 1500, 2000, 2500, 3000, 5000, 10_000)
WIDE = [1, 5, 10, 15, 17, 20, 27, 30, 35, 40]
# What CUT leaves of some lags at some threshold, as the paper prints it for its first sample
PRINTED_CUT = (
    (WIDE, 0.05, WIDE),
    (WIDE, 0.13, [1, 5, 27, 35]),
    ([1, 5, 17, 27, 30, 35], 0.13, [1, 5, 17, 30]),
)
PRINTED_FSC = [24, 30]
SAMPLES = """
suppressMessages(library(hdMTD))
set.seed(11)
first <- MTDmodel(c(1, 15, 30), c(0, 1), 0.01, c(0.39, 0.3, 0.3), p0 = c(0.5, 0.5))
writeLines(paste(perfectSample(first, N = 1000), collapse = ""), "first.txt")
set.seed(123)
model <- MTDmodel(c(1, 5), c(0, 1), 0.01, p0 = c(0.5, 0.5))
samples <- lapply(1:100, function(i) perfectSample(model, N = 10000))
writeLines(sapply(samples, paste, collapse = ""), "samples.txt")
published <- readRDS(commandArgs(TRUE)[1])
write.table(published$SFS, "fs.txt", row.names = FALSE, col.names = FALSE)
write.table(published$ZOracle, "oracle.txt", row.names = FALSE, col.names = FALSE)
for (i in seq_len(as.integer(commandArgs(TRUE)[2]))) {
  spent <- system.time(lags <- hdMTD_FS(samples[[i]][1:1000], d = 100, l = 2))
  cat(i, lags, spent[["user.self"]], "\n", file = "package.txt", append = TRUE)
}
"""


def main() -> None:
    """Draw the samples, choose, compare, and keep the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("published", type=Path)
    parser.add_argument("--package", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "samples.R")
        script.write_text(SAMPLES)
        command = ["Rscript", str(script), str(asked.published.resolve()), str(asked.package)]
        subprocess.run(command, cwd=folder, check=True)
        rewrite(HERE / "rows" / "published.jsonl", rows(Path(folder)))


def rows(folder: Path) -> list[tuple[dict, dict]]:
    """For each size: how often FS chose what was published, and how often that is right."""
    samples = [np.array(list(line), int) for line in (folder / "samples.txt").read_text().split()]
    chosen = np.loadtxt(folder / "fs.txt", dtype=int).reshape(100, len(SIZES), 2)
    oracle = np.sort(np.loadtxt(folder / "oracle.txt", dtype=int).reshape(100, len(SIZES), 2))
    found = []
    for i, n in enumerate(SIZES):
        # The package has the newest symbol first
        here = np.array([forward_stepwise([x[:n][::-1]], 2, 100, 2) for x in samples])
        row = {
            "samples": len(samples),
            "same": int((here == chosen[:, i]).all(axis=1).sum()),
            "right": int((np.sort(here) == [1, 5]).all(axis=1).sum()),
            "oracle_right": int((oracle[:, i] == [1, 5]).all(axis=1).sum()),
            "differs_from_oracle": int((np.sort(chosen[:, i]) != oracle[:, i]).any(axis=1).sum()),
        }
        found.append(({"estimator": "hdMTD FS", "n": n}, row))
    found.append(({"estimator": "hdMTD FSC", "n": 1000}, {"same": cuts(folder), "samples": 4}))
    if (folder / "package.txt").exists():
        for sample, one, two, spent in np.loadtxt(folder / "package.txt", ndmin=2).tolist():
            same = [one, two] == chosen[int(sample) - 1, 0].tolist()
            row = {"same": int(same), "seconds": spent, "version": "hdMTD 0.1.4, R 4.2.2"}
            found.append(({"estimator": "hdMTD in R", "n": 1000, "sample": int(sample)}, row))
    return found


def cuts(folder: Path) -> int:
    """How many of the four answers of CUT and FSC that the paper prints come out here."""
    x = np.array(list((folder / "first.txt").read_text().strip()), int)[::-1]
    chosen = forward_stepwise([x[500:]], 2, 40, 4)
    same = [sorted(cut([x[:500]], 2, 40, chosen, alpha=0.1)) == PRINTED_FSC]
    same += [sorted(cut([x], 2, 40, some, alpha)) == left for some, alpha, left in PRINTED_CUT]
    return sum(same)


if __name__ == "__main__":
    main()
