"""Where the seconds of ``make reproduce`` go in an environment that is there: its phases, and the jobs of each table.

    python benchmarks/reproduction.py

Rows of ``benchmarks/reproduction.jsonl`` are of two kinds. ``phase``: a phase and its seconds on the clock. ``jobs``: a table, the
number of its jobs, and their seconds, added up over all processes. docs/explanation/timings.md shows both.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from study import keep

BEGIN = perf_counter()

from scb.folders import opened  # noqa: E402
from scb.jobs.forecast import Forecast  # noqa: E402
from scb.paper.reproduction import choose_figures, make_figures  # noqa: E402
from scb.paper.results import write_results  # noqa: E402
from scb.provenance import machine  # noqa: E402

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".jsonl")


class Phases(Forecast):
    """A forecast that remembers when each phase began."""

    began: dict[str, float]

    def note(self, phase: str, share: float, detail: str = "") -> None:
        """Note the first mention of a phase."""
        self.began.setdefault(phase, perf_counter())
        super().note(phase, share, detail)


def main() -> None:
    """Reproduce everything in an empty folder, and keep the rows."""
    workers = os.cpu_count() or 1
    chosen = choose_figures(shipped=ROOT / "docs" / "tables")
    forecast = Phases(chosen.costs(workers))
    forecast.began = {"loading the library": BEGIN}
    with TemporaryDirectory() as path, opened(Path(path), "making results") as folder:
        folder.claim("report.html", "claims.md", "cache/", "tables/", "figures/")
        made = make_figures(chosen, folder, workers, forecast=forecast)
        forecast.began["judging and writing the report"] = perf_counter()
        write_results(chosen, made, folder)
    about = {"machine": machine(), "workers": workers}
    times = [*forecast.began.values(), perf_counter()]
    phases = [
        {"what": "phase", "phase": phase, "seconds": round(end - begin, 1)} | about
        for phase, begin, end in zip(forecast.began, times, times[1:], strict=False)
    ]
    jobs = [
        {"what": "jobs", "table": name, "jobs": len(chosen.work[name]), "seconds": round(seconds, 1)} | about
        for name, seconds in sorted(made.seconds.items(), key=lambda taken: -taken[1])
    ]
    keep(KEPT, "phase", phases)
    keep(KEPT, "jobs", jobs)


if __name__ == "__main__":
    main()
