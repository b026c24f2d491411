"""Sessions of clients that are busy with something else."""

import shoal
from tests.remote.peers import Cell, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import TCP, served


def test_reconnect_in_background():
    cell = Cell()
    with (
        served(lambda: cell, TCP, session_ttl=2.0) as url,
        proxied(url) as (proxy, through),
        shoal.connect(through, on_lost="resume", timeout=20.0, shared_memory=False) as envs,
    ):
        envs.reset(seed=0)
        envs.step([0, 0, 0])
        for times in range(1, 4):
            proxy.cut()
            assert wait_until(lambda times=times: envs.stats().reconnects == times, 20.0)
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [2, 2, 2]
        assert cell.is_closed == 0


def test_step_reconnects_after_failed_background_attempts():
    with (
        served(Cell, TCP, session_ttl=60.0) as url,
        proxied(url) as (proxy, through),
        shoal.connect(through, on_lost="resume", timeout=20.0, shared_memory=False) as envs,
    ):
        envs.reset(seed=0)
        port, proxy.port = proxy.port, 1  # no server listens there
        proxy.cut()
        link = envs.pool._dispatcher.link
        link.heartbeat()  # notices the loss
        link.heartbeat()  # fails to reconnect
        assert not link.is_over
        proxy.port = port
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
