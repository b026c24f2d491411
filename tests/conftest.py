"""Settings of every test process: SIGINT, the threads of torch, and one Ray for all tests."""

import os
import signal

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Set before torch is imported, also for the processes that tests start. Small networks are slower
# with more threads, particularly if tests run in parallel.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_configure():
    """Undo ignored and blocked signals, which child processes would inherit (nohup, CI)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # Unlike SIG_IGN, a handler is not inherited by the programs that tests start.
        signal.signal(signal.SIGHUP, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGHUP])


@pytest.fixture(scope="session")
def ray_here():
    """Start a local Ray, as a user would, for all tests of a process."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=150_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def patched_gymnasium():
    """``gymnasium.make_vec`` accepts ``vectorization_mode="shoal"`` during the test."""
    import shoal

    shoal.patch_gymnasium()
    yield
    shoal.unpatch_gymnasium()
