"""Baselines of remote vectors: their results and their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ROOT
from benchmarks.remote.null import NUM_SLOTS, OUTCOME
from benchmarks.remote.serving import served
from shoal._bench.process import ContenderError

grpc = pytest.importorskip("grpc")
msgspec = pytest.importorskip("msgspec")
websockets = pytest.importorskip("websockets")

VECTORS = ["GrpcVector", "WebsocketVector", "GymApiJsonVector"]
ACTIONS = np.arange(NUM_SLOTS)


@pytest.fixture
def baselines():
    from benchmarks.remote import baselines

    return baselines


@pytest.fixture(autouse=True)
def _all_servers_end() -> Iterator[None]:
    before = _children()
    yield
    assert not _children() - before


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_all_bytes_are_exchanged(baselines, kind: str) -> None:
    # More bytes than a socket buffers.
    with closing(baselines.PingPong(kind, 3_000_000, 5_000_000)) as baseline:
        for _ in range(3):
            baseline.step(ACTIONS)


@pytest.mark.parametrize("name", VECTORS)
def test_a_step_has_the_outcome_of_the_server(baselines, name: str) -> None:
    with closing(getattr(baselines, name)()) as baseline:
        for _ in range(3):
            outcome = baseline.step(ACTIONS)
            assert [array.dtype for array in outcome] == [array.dtype for array in OUTCOME]
            for array, expected in zip(outcome, OUTCOME, strict=True):
                np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("name", VECTORS)
def test_the_server_reads_the_actions(baselines, name: str) -> None:
    with (
        closing(getattr(baselines, name)()) as baseline,
        pytest.raises((grpc.RpcError, websockets.ConnectionClosedError)),
    ):
        baseline.step(ACTIONS[1:])


def test_a_server_ends_with_a_client_that_is_killed() -> None:
    client = (
        "import os, signal\n"
        "from benchmarks.remote.baselines import GrpcVector\n"
        "vector = GrpcVector()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The server keeps the pipe of standard error open while it lives, so run() would time out.
    done = subprocess.run(
        [sys.executable, "-c", client], cwd=ROOT, stderr=subprocess.PIPE, timeout=30
    )
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")


def test_a_server_that_does_not_start_is_an_error() -> None:
    with pytest.raises(ContenderError, match="ended before it listened"), served(callable):
        pass
