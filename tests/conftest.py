import os

os.environ.setdefault("NUMBA_NUM_THREADS", "2")


def pytest_configure(config):
    """Tests run side by side already, so kernels run on one thread; a test that wants two says so."""
    import numba

    numba.set_num_threads(1)
