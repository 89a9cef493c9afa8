import os
from collections import Counter

import pytest

LEFT_OUT = Counter()  # slow tests by file

os.environ.setdefault("NUMBA_NUM_THREADS", "2")


def pytest_configure(config):
    """Tests run side by side already, so kernels run on one thread; a test that wants two says so."""
    import numba

    numba.set_num_threads(1)


def pytest_deselected(items):
    """Remember the slow tests that are left out."""
    for item in items:
        if item.get_closest_marker("slow"):
            LEFT_OUT[item.location[0]] += 1


def pytest_sessionfinish(session):
    """A process of ``-n`` tells the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(LEFT_OUT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """All processes leave out the same tests."""
    LEFT_OUT.update(Counter(getattr(node, "workeroutput", {}).get("left_out", {})) - LEFT_OUT)


def pytest_terminal_summary(terminalreporter):
    """Say aloud what was not tested, slow tests or a browser: what is skipped is easily overlooked."""
    if LEFT_OUT:
        files = ", ".join(f"{name} ({count})" for name, count in sorted(LEFT_OUT.items()))
        terminalreporter.write_line(f"LEFT OUT, {sum(LEFT_OUT.values())} slow tests: {files}", red=True, bold=True)
    for report in terminalreporter.stats.get("skipped", []):
        if "NO BROWSER" in str(report.longrepr):
            terminalreporter.write_line(str(report.longrepr[2]), red=True, bold=True)
            break
