import os

os.environ.setdefault("NUMBA_NUM_THREADS", "2")


def pytest_configure(config):
    """Tests run side by side already, so kernels run on one thread; a test that wants two says so."""
    import numba

    numba.set_num_threads(1)


def pytest_terminal_summary(terminalreporter):
    """Say aloud that the lab was not tested in a browser: a skipped test is easily overlooked."""
    for report in terminalreporter.stats.get("skipped", []):
        if "NO BROWSER" in str(report.longrepr):
            terminalreporter.write_line(str(report.longrepr[2]), red=True, bold=True)
            break
