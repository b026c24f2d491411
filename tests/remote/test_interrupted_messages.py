"""Interrupts between any two lines of a client never execute a step twice or unasked."""

from contextlib import contextmanager
from functools import partial

import pytest

import shoal
from shoal.errors import ConnectionLostError
from shoal.remote._channel import Channel
from shoal.remote._link import Link
from tests.interrupting import Lines
from tests.remote.peers import Cell
from tests.remote.serving import TCP, served

# Without shared memory and the fast path, all messages pass through Python code.
connected = partial(shoal.connect, shared_memory=False, timeout=20.0)


@contextmanager
def interrupted_once(owner, name, *, after):
    """Raise KeyboardInterrupt right before or right after the next call of a method."""
    method = getattr(owner, name)
    with pytest.MonkeyPatch.context() as patch:

        def interrupted(*args, **kwargs):
            patch.undo()
            if after:
                method(*args, **kwargs)
            raise KeyboardInterrupt

        patch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


@contextmanager
def owned_cell(**options):
    """Yield a cell, and the pool of a client that has reset it and made one step."""
    cell = Cell()
    with served(lambda: cell, TCP) as url, connected(url, **options) as envs:
        envs.reset()
        envs.step([0, 0, 0])
        yield cell, envs.pool


def cut(pool):
    pool._dispatcher.link._channel.transport.close()


def reconnect(pool):
    """Resume the session with nothing in flight."""
    pool._dispatcher.link.reconnect(ConnectionLostError("it was cut"))


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("send", ["step", "send"])
def test_unsent_step_is_never_executed(send, is_lost):
    with owned_cell(on_lost="resume") as (cell, pool):
        with interrupted_once(Channel, "_retain", after=True):
            getattr(pool, send)([11, 11, 11])
        assert pool.in_flight == 0
        if is_lost:
            cut(pool)
            reconnect(pool)
        assert pool.step([22, 22, 22])[0].tolist() == [[0, 2], [1, 2], [2, 2]]
        assert [actions for _, actions in cell.executed] == [[0] * 3, [22] * 3]


@pytest.mark.parametrize("is_lost", [False, True])
def test_interrupted_send_is_received(is_lost):
    with owned_cell(on_lost="resume") as (cell, pool):
        with interrupted_once(Channel, "_transmit", after=False):
            pool.step([11, 11, 11])
        assert pool.in_flight == 3
        if is_lost:
            cut(pool)
        assert pool.recv().observations.tolist() == [[0, 2], [1, 2], [2, 2]]
        assert [actions for _, actions in cell.executed] == [[0] * 3, [11] * 3]


POSITIONS = {
    "before its meta": (Link, "read_meta", False),
    "before its tensors": (Link, "read_into", False),
    "after its tensors": (Link, "read_into", True),
    "before it is marked as received": (Link, "complete", False),
}


@pytest.mark.parametrize("position", POSITIONS)
def test_interrupted_response_is_received(position):
    owner, name, after = POSITIONS[position]
    with owned_cell(on_lost="resume") as (cell, pool):
        with interrupted_once(owner, name, after=after):
            pool.step([0, 0, 0])
        assert pool.in_flight == 3
        assert pool.recv().observations.tolist() == [[0, 2], [1, 2], [2, 2]]
        assert pool.step([0, 0, 0])[0].tolist() == [[0, 3], [1, 3], [2, 3]]
        assert cell.total() == 9


@pytest.mark.parametrize("position", [each for each in POSITIONS if "marked" not in each])
def test_interrupted_response_without_resuming_is_a_loss(position):
    """The rest of the message would be taken for the start of a new one."""
    owner, name, after = POSITIONS[position]
    with owned_cell(on_lost="raise") as (_, pool):
        with interrupted_once(owner, name, after=after):
            pool.step([0, 0, 0])
        for _ in range(2):
            with pytest.raises(ConnectionLostError):
                pool.recv()


def interrupt_at_line(number, how, is_lost):
    """Interrupt a step at a line, then step again; return whether the line exists."""
    with owned_cell(on_lost="resume") as (cell, pool):
        with Lines(number) as lines:
            if how == "step":
                pool.step([1, 1, 1])
            else:
                pool.send([1, 1, 1])
                pool.recv()
        if is_lost and pool._dispatcher.link._channel.transport is not None:
            cut(pool)
        if pool.in_flight:
            pool.recv()
        observations = pool.step([2, 2, 2])[0]
        executed = [actions[0] for _, actions in cell.executed]
        assert executed in ([0, 2], [0, 1, 2]), lines.where
        assert observations.tolist() == [[k, len(executed)] for k in range(3)], lines.where
        return bool(lines.where)


def interrupt_at_lines(numbers, how, is_lost):
    """Interrupt a step at each of these lines; return how many exist."""
    for count, number in enumerate(numbers):
        if not interrupt_at_line(number, how, is_lost):
            return count
    return len(numbers)


@pytest.mark.parametrize("is_lost", [False, True])
def test_interrupts_at_some_lines_of_a_step(is_lost):
    assert interrupt_at_lines(range(3, 2000, 17), "step", is_lost) > 5


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("how", ["step", "send"])
def test_interrupts_at_every_line_of_a_step(how, is_lost):
    assert interrupt_at_lines(range(2000), how, is_lost) > 100
