"""A repeated request is executed once, and answered once per connection."""

import struct
import sys
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.pools import InlinePool
from shoal.remote._messages import CallRequest, ResetRequest, pack_message
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import SOME_SLOTS, WHOLE, Kind
from tests.remote.peers import Cell, Raw
from tests.remote.serving import TCP, served

ALL_SLOTS = struct.pack("<2q", 0, 1)
ACTIONS = struct.pack("<2q", 2, 3)


class Counter(gymnasium.Env):
    """Observes the number of steps, and records all calls."""

    observation_space = spaces.Box(0, 1e6, (), np.float64)
    action_space = spaces.Discrete(10)

    def __init__(self, done):
        self._done = done
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        self._done.append("reset")
        return np.float64(self._steps), {}

    def step(self, action):
        self._done.append(int(action))
        self._steps += 1
        return np.float64(self._steps), float(action), False, False, {}

    def touch(self):
        self._done.append("touch")


PATHS = {
    "fast_path_steps": {"body": ACTIONS, "rows": 2, "flags": WHOLE},
    "slot by slot": {"body": ALL_SLOTS + ACTIONS, "rows": 2, "flags": SOME_SLOTS},
}


@pytest.fixture
def fast_path_steps(monkeypatch):
    """Record the steps that take the fast path."""
    handler = sys.modules["shoal.remote._request_handler"].RequestHandler
    serve_fast_path, fast_steps = handler.serve_fast_path, []

    def recorded(self, timeout):
        is_served = serve_fast_path(self, timeout)
        if is_served:
            fast_steps.append(self)
        return is_served

    monkeypatch.setattr(handler, "serve_fast_path", recorded)
    return fast_steps


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_repeated_step_is_executed_once(path, resumable, fast_path_steps):
    done = []
    with (
        served(lambda: InlinePool([lambda: Counter(done)] * 2), TCP) as it,
        Raw(it, resumable=resumable) as raw,
    ):
        raw.socket.settimeout(5.0)
        raw.write(Kind.RESET, pack_message(ResetRequest((0, 1), pack_values([[1, 2], None]))))
        assert raw.last_response()[0].kind is Kind.BATCH
        done.clear()
        for _ in range(5):
            step = raw.message(Kind.STEP, **PATHS[path])
            raw.socket.sendall(step * 3)
            raw.last_response()
            raw.socket.sendall(step)  # after it was answered
        later = raw.message(Kind.STEP, **PATHS[path])
        raw.socket.sendall(later + step + later)  # out of order
        assert raw.last_response()[0].reply_to == 7
        raw.write(Kind.CALL, pack_message(CallRequest("touch", False, (0,), pack_values([[], {}]))))
        header, _ = raw.read()  # no other message in between
        assert (header.kind, header.reply_to) == (Kind.REPLY, 8)
        assert done == [2, 3] * 6 + ["touch"]
        # The message after a duplicate takes the general path.
        assert bool(fast_path_steps) == (path == "fast_path_steps" and not resumable)


@pytest.mark.parametrize("resumable", [False, True])
def test_repeated_resets_and_calls_are_executed_once(resumable):
    done = []
    with (
        served(lambda: InlinePool([lambda: Counter(done)] * 2), TCP) as it,
        Raw(it, resumable=resumable) as raw,
    ):
        raw.socket.settimeout(5.0)
        reset = pack_message(ResetRequest((0, 1), pack_values([[1, 2], None])))
        raw.socket.sendall(raw.message(Kind.RESET, reset) * 3)
        assert raw.last_response()[0].kind is Kind.BATCH
        call = pack_message(CallRequest("touch", False, (0,), pack_values([[], {}])))
        raw.socket.sendall(raw.message(Kind.CALL, call) * 3)
        assert raw.last_response()[0].kind is Kind.REPLY
        raw.socket.sendall(raw.message(Kind.LATEST, pack_values([0])) * 3)
        header, _ = raw.read()
        assert (header.kind, header.reply_to) == (Kind.BATCH, 3)
        assert done == ["reset", "reset", "touch"]


@pytest.mark.parametrize("resumable", [False, True])
def test_repeated_step_of_a_busy_device_is_executed_once(resumable):
    cell = Cell()
    with served(lambda: cell, TCP) as it, Raw(it, resumable=resumable) as raw:
        raw.socket.settimeout(5.0)
        reset = pack_message(ResetRequest((0, 1, 2), pack_values([[None] * 3, None])))
        raw.write(Kind.RESET, reset)
        raw.last_response()
        body = struct.pack("<3q", 200, 0, 0)
        message = raw.message(Kind.STEP, body=body, rows=3, flags=WHOLE)
        for _ in range(3):  # while the device is busy
            raw.socket.sendall(message)
            time.sleep(0.02)
        assert raw.last_response()[0].reply_to == 2
        raw.socket.sendall(message)
        raw.write(Kind.LATEST, pack_values([0]))
        header, _ = raw.read()
        assert (header.kind, header.reply_to) == (Kind.BATCH, 3)
        assert cell.executed == [([0, 1, 2], [200, 0, 0])]


@pytest.mark.parametrize("path", PATHS)
def test_retransmitted_step_is_answered_without_execution(path):
    """As by a client that has not received the response."""
    done = []
    with shoal.serve({"it": lambda: InlinePool([lambda: Counter(done)] * 2)}, TCP) as server:
        with Raw(server.url, resumable=True) as raw:
            raw.socket.settimeout(5.0)
            raw.write(Kind.RESET, pack_message(ResetRequest((0, 1), pack_values([[1, 2], None]))))
            raw.last_response()
            done.clear()
            step = raw.message(Kind.STEP, **PATHS[path])
            raw.socket.sendall(step)
            header, _ = raw.last_response()
            session, received = raw.info.session, header.number
        for _ in range(3):
            with Raw(server.url, session=session, received=received - 1, resumable=True) as again:
                again.socket.settimeout(5.0)
                assert again.info.received == 2
                again.socket.sendall(step)
                header, _ = again.read()
                assert (header.kind, header.reply_to) == (Kind.BATCH, 2)
                assert header.number == received
        assert done == [2, 3]
