"""Clients that send invalid messages are rejected, and do not affect others."""

import random
import socket
import struct
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from msgspec import msgpack

import shoal
from shoal.pools import InlinePool
from shoal.remote._messages import (
    CallRequest,
    ClientHello,
    ResetRequest,
    SessionEnded,
    StepRequest,
    pack_message,
    unpack_message,
)
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind
from shoal.testing import ProbeEnv
from tests.remote.mutations import mutated
from tests.remote.peers import Cell, Raw, shoal_threads, wait_until


@contextmanager
def checked_server(**options):
    """A server that must still work at the end, with the same number of threads."""
    options = {"session_ttl": 0.5, "max_sessions": 8} | options
    before = len(shoal_threads())
    made = ProbeEnv.open_count
    errors = []
    hook, threading.excepthook = threading.excepthook, lambda args: errors.append(args.exc_value)
    try:
        with shoal.serve(
            {"it": lambda: InlinePool([ProbeEnv] * 2)}, "tcp://127.0.0.1:0", **options
        ) as server:
            with shoal.connect(f"{server.url}/it", timeout=10.0) as other:
                other.reset(seed=0)
                yield server
                other.step(other.action_space.sample())
            assert wait_until(lambda: server.sessions == 0, 5.0), server.sessions
            with shoal.connect(f"{server.url}/it", timeout=10.0) as again:
                again.reset(seed=0)
        assert wait_until(lambda: len(shoal_threads()) <= before, 12.0), shoal_threads()
        assert ProbeEnv.open_count == made
    finally:
        threading.excepthook = hook
    assert not errors, errors


def requests(raw):
    """Valid messages of every kind."""
    slots = struct.pack("<2q", 0, 1)
    actions = struct.pack("<2q", 0, 1) + struct.pack("<4d", 0.1, 0.2, 0.3, 0.4)
    reset = pack_message(ResetRequest((0, 1), pack_values([[1, 2], None])))
    call = pack_message(CallRequest("label", False, (0, 1), pack_values([[], {}])))
    step = pack_message(StepRequest((0.5, 0.5)))
    return [
        raw.message(Kind.RESET, reset),
        raw.message(Kind.STEP, b"", actions, rows=2, flags=2),
        raw.message(Kind.STEP, step, slots + actions, rows=2, flags=1),
        raw.message(Kind.CALL, call),
        raw.message(Kind.LATEST, pack_values([0, 1])),
        raw.message(Kind.CANCEL, pack_values([0, 1])),
        raw.message(Kind.HEARTBEAT, number=0),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_mutated_sessions(seed):
    with checked_server() as server:
        feed(server, 12, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10, 14))
def test_thousands_of_mutated_sessions(seed):
    with checked_server() as server:
        feed(server, 1000, seed)


def feed(server, sessions, seed):
    rng = random.Random(seed)
    for _ in range(sessions):
        with Raw(server.url) as raw:
            messages = requests(raw)
            for _ in range(rng.randrange(1, 5)):
                at = rng.randrange(len(messages))
                messages[at] = mutated(rng, messages[at])
            with suppress(OSError):
                raw.socket.sendall(b"".join(messages))
                raw.socket.shutdown(socket.SHUT_WR)
                assert raw.is_disconnected(20.0)


def test_random_bytes_instead_of_hello():
    rng = random.Random(4)
    with checked_server() as server:
        hello = pack_message(
            ClientHello(1, "it", None, b"proof", client="c", values=pack_values({}))
        )
        for k in range(40):
            with Raw(server.url, name=None) as raw:
                if k % 4 == 0:
                    data = rng.randbytes(rng.randrange(1, 3000))
                elif k % 4 == 1:
                    data = raw.message(Kind.CLIENT_HELLO, rng.randbytes(50), number=0)
                else:
                    data = mutated(rng, raw.message(Kind.CLIENT_HELLO, hello, number=0))
                with suppress(OSError):
                    raw.socket.sendall(data)
                    raw.socket.shutdown(socket.SHUT_WR)
                    assert raw.is_disconnected()


HELLOS = {
    "invalid UTF-8": pack_message(ClientHello(1, "abc")).replace(b"abc", b"\xff\xfe\xfd"),
    "a list": msgpack.encode([1, "it"]),
    "a name that is a number": msgpack.encode({"version": 1, "name": 3}),
    "empty": b"",
    "deep": b"\x91" * 5000,
    "arguments that are a list": pack_message(ClientHello(1, "it", values=pack_values([1, 2]))),
    "arguments that are a number": pack_message(ClientHello(1, "it", values=pack_values(7))),
    "arguments with keys that are not strings": pack_message(
        ClientHello(1, "it", values=pack_values({1: 2}))
    ),
    "arguments that are not encoded": pack_message(ClientHello(1, "it", values=b"\xc1\xc1")),
    "many slots": pack_message(ClientHello(1, "it", num_envs=2**40)),
    "negative slots": pack_message(ClientHello(1, "it", num_envs=-1)),
    "an unknown session": pack_message(ClientHello(1, "it", session=b"x" * 16, received=3)),
    "a long session": pack_message(ClientHello(1, "it", session=b"x" * 50_000)),
}


@pytest.mark.parametrize("hello", HELLOS)
def test_invalid_hello(hello):
    with checked_server() as server, Raw(server.url, name=None) as raw:
        raw.write(Kind.CLIENT_HELLO, HELLOS[hello], number=0)
        assert raw.is_disconnected(3.0)


def call_of(values, slots=(0,), what="label", is_function=False):
    return pack_message(CallRequest(what, is_function, slots, values))


ACTIONS = struct.pack("<2q", 0, 1) + struct.pack("<4d", 0.1, 0.2, 0.3, 0.4)
VIOLATIONS = {
    "wrong magic": lambda raw: b"SHOE" + raw.message(Kind.HEARTBEAT)[4:],
    "an unknown kind": lambda raw: b"SHOL\xee" + raw.message(Kind.HEARTBEAT)[5:],
    "a batch": lambda raw: raw.message(Kind.BATCH),
    "a server hello": lambda raw: raw.message(Kind.SERVER_HELLO, number=0),
    "a second client hello": lambda raw: raw.message(
        Kind.CLIENT_HELLO, pack_message(ClientHello(1, "it")), number=0
    ),
    "huge meta": lambda raw: raw.message(Kind.CALL, overrides={"meta": 2**32 - 1}),
    "huge body": lambda raw: raw.message(Kind.STEP, rows=2, flags=2, overrides={"body": 2**63}),
    "a body of a call": lambda raw: raw.message(Kind.CALL, call_of(pack_values([[], {}])), b"1234"),
    "too many rows": lambda raw: raw.message(Kind.STEP, b"", ACTIONS * 2, rows=4, flags=2),
    "no rows": lambda raw: raw.message(Kind.STEP, b"", b"", rows=0, flags=1),
    "a wrong number": lambda raw: raw.message(Kind.HEARTBEAT, number=7),
    "a wrong acknowledgement": lambda raw: raw.message(Kind.HEARTBEAT, number=0, ack=99),
    "slots out of range": lambda raw: raw.message(
        Kind.STEP, b"", struct.pack("<2q", 0, 7) + ACTIONS, rows=2, flags=1
    ),
    "negative slots": lambda raw: raw.message(
        Kind.STEP, b"", struct.pack("<2q", -1, 0) + ACTIONS, rows=2, flags=1
    ),
    "repeated slots": lambda raw: raw.message(
        Kind.STEP, b"", struct.pack("<2q", 1, 1) + ACTIONS, rows=2, flags=1
    ),
    "wrong number of deadlines": lambda raw: raw.message(
        Kind.STEP, pack_message(StepRequest((1.0,))), ACTIONS, rows=2, flags=2
    ),
    "invalid extras": lambda raw: raw.message(
        Kind.STEP, pack_message(StepRequest((), pack_values([5, {}]))), ACTIONS, rows=2, flags=2
    ),
    "extras of unknown leaves": lambda raw: raw.message(
        Kind.STEP,
        pack_message(StepRequest((), pack_values([[], {"99": 1}]))),
        ACTIONS,
        rows=2,
        flags=2,
    ),
    "one value instead of two": lambda raw: raw.message(Kind.CALL, call_of(pack_values([5]))),
    "a number instead of values": lambda raw: raw.message(Kind.CALL, call_of(pack_values(5))),
    "huge slots": lambda raw: raw.message(Kind.CALL, call_of(pack_values([[], {}]), (2**64 - 1,))),
    "invalid seeds": lambda raw: raw.message(
        Kind.RESET, pack_message(ResetRequest((0,), pack_values(3)))
    ),
    "latest of a number": lambda raw: raw.message(Kind.LATEST, pack_values(0)),
    "latest of lists": lambda raw: raw.message(Kind.LATEST, pack_values([[0]])),
    "latest of a dict": lambda raw: raw.message(Kind.LATEST, pack_values({"a": 1})),
    "latest of a huge number": lambda raw: raw.message(Kind.LATEST, pack_values([2**70])),
    "latest of strings": lambda raw: raw.message(Kind.LATEST, pack_values(["a"])),
    "cancel of None": lambda raw: raw.message(Kind.CANCEL, pack_values(None)),
    "close with meta": lambda raw: raw.message(Kind.CLOSE, b"xyz"),
}


@pytest.mark.parametrize("what", VIOLATIONS)
def test_protocol_violation_ends_the_session(what):
    with checked_server() as server, Raw(server.url) as raw:
        raw.socket.sendall(VIOLATIONS[what](raw))
        raw.socket.settimeout(5.0)
        header, meta = raw.read()
        assert header.kind is Kind.SESSION_ENDED
        assert unpack_message(SessionEnded, meta).reason == "protocol"
        assert raw.is_disconnected(3.0)


INVALID_REQUESTS = {
    "actions out of range": lambda raw: raw.message(
        Kind.STEP, b"", struct.pack("<2q", 99, 99) + ACTIONS[16:], rows=2, flags=2
    ),
    "actions that are NaN": lambda raw: raw.message(
        Kind.STEP, b"", ACTIONS[:16] + struct.pack("<4d", *[float("nan")] * 4), rows=2, flags=2
    ),
    "extras of a wrong dtype": lambda raw: raw.message(
        Kind.STEP,
        pack_message(StepRequest((), pack_values([[], {"0": np.array(["a", "b"])}]))),
        ACTIONS,
        rows=2,
        flags=2,
    ),
    "extras of a wrong shape": lambda raw: raw.message(
        Kind.STEP,
        pack_message(StepRequest((), pack_values([[], {"1": np.zeros((7, 7))}]))),
        ACTIONS,
        rows=2,
        flags=2,
    ),
    "wrong number of seeds": lambda raw: raw.message(
        Kind.RESET, pack_message(ResetRequest((0,), pack_values([[1, 2, 3], None])))
    ),
    "seeds that are strings": lambda raw: raw.message(
        Kind.RESET, pack_message(ResetRequest((0,), pack_values([["a"], None])))
    ),
    "a call with slots": lambda raw: raw.message(
        Kind.CALL, call_of(pack_values([[], {"slots": 3}]))
    ),
    "call of an unknown name": lambda raw: raw.message(
        Kind.CALL, call_of(pack_values([[], {}]), what="no_such_thing")
    ),
    "numbers instead of arguments": lambda raw: raw.message(
        Kind.CALL, call_of(pack_values([5, 6]))
    ),
}


@pytest.mark.parametrize("what", INVALID_REQUESTS)
def test_invalid_request_fails_or_ends_the_session(what):
    with checked_server() as server, Raw(server.url) as raw:
        reset = pack_message(ResetRequest((0, 1), pack_values([[1, 2], None])))
        raw.write(Kind.RESET, reset)
        raw.socket.settimeout(5.0)
        assert raw.last_response()[0].kind is Kind.BATCH
        raw.socket.sendall(INVALID_REQUESTS[what](raw))
        header, _ = raw.last_response()
        assert header.kind in (Kind.FAILURE, Kind.SESSION_ENDED)
        if header.kind is Kind.FAILURE:
            raw.write(Kind.STEP, b"", ACTIONS, rows=2, flags=2)
            assert raw.last_response()[0].kind in (Kind.BATCH, Kind.FAILURE)


def test_exceeding_max_inflight_ends_the_session():
    cell = Cell()
    reset = pack_message(ResetRequest((0, 1, 2), pack_values([[None] * 3, None])))
    with (
        shoal.serve({"it": lambda: cell}, "tcp://127.0.0.1:0", max_inflight=2) as server,
        Raw(server.url) as raw,
    ):
        raw.write(Kind.RESET, reset)
        raw.last_response()
        for slot in range(3):
            raw.write(Kind.STEP, b"", struct.pack("<2q", slot, 300), rows=1, flags=1)
        header, meta = raw.read()
        assert header.kind is Kind.SESSION_ENDED
        assert "2 requests" in unpack_message(SessionEnded, meta).message
        assert raw.is_disconnected(5.0)
