"""Limits on the size of messages are enforced before memory is allocated."""

from contextlib import contextmanager

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import ProtocolError
from shoal.pools import InlinePool
from shoal.remote._messages import ClientHello, Rejection, ServerHello, SessionEnded, unpack_message
from shoal.remote._wire import HEADER_BYTES, Kind, pack_header, read_header
from tests.remote.mutations import LITTLE, peak_of
from tests.remote.peers import Raw, fake_server, plain
from tests.remote.proxy import REPLY, Retelling
from tests.remote.serving import TCP, Factory, connected, served

MAX_META = 5000
"""Bytes; far more than an ordinary message needs."""


class Talkative(gymnasium.Env):
    """Takes the size of the info as action; observes the number of steps."""

    observation_space = spaces.Box(0, 1e6, (), np.float64)
    action_space = spaces.Discrete(1_000_000)

    def __init__(self):
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return np.float64(0), {}

    def step(self, action):
        self._steps += 1
        info = {"told": bytes(action)} if action else {}
        return np.float64(self._steps), 1.0, False, False, info

    def tell(self, count):
        return bytes(count)


class Writer(Talkative):
    """Takes the length of the observation, a string, as action."""

    observation_space = spaces.Text(1_000_000)

    def reset(self, *, seed=None, options=None):
        return "a", {}

    def step(self, action):
        self._steps += 1
        return "b" * max(1, action), float(self._steps), False, False, {}


def talkative(env=Talkative, **options):
    return connected(
        lambda: InlinePool([env] * 2), server={"max_meta": MAX_META}, timeout=5.0, **options
    )


# Responses


def test_oversized_results_are_an_error():
    envs = talkative()
    assert envs.call("tell", 2000) == (bytes(2000),) * 2
    with pytest.raises(ValueError, match=rf"results have \d+ bytes, but at most {MAX_META} can be sent"):
        envs.call("tell", MAX_META)
    assert envs.call("tell", 1) == (b"\0", b"\0")
    envs.close()


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("how", ["step", "send"])
def test_oversized_infos_are_not_sent(how, on_lost):
    envs = talkative(on_lost=on_lost)
    envs.reset(seed=0)
    for count, sizes in enumerate([(10, 20), (10, MAX_META), (0, 0), (10, 20)], start=1):
        if how == "step":
            results = envs.step(np.array(sizes))
        else:
            envs.send(np.array(sizes))
            results = envs.recv()[1:]
        observations, rewards, _, _, infos = results
        np.testing.assert_array_equal(observations, [count, count])
        np.testing.assert_array_equal(rewards, [1.0, 1.0])
        if sum(sizes) > MAX_META:
            assert not infos.get("_told", np.zeros(2, bool))[1]
            (lost,) = filter(None, infos["unsent"])
            assert f"bytes, but at most {MAX_META} can be sent" in lost
        else:
            assert "unsent" not in infos
            assert sum(map(len, infos.get("told", ()))) == sum(sizes)
    envs.close()


def test_oversized_observations_without_fixed_shape_are_an_error():
    envs = talkative(Writer)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=rf"\d+ bytes .*, but at most {MAX_META} can be sent"):
        envs.step(np.array([1, MAX_META]))
    observations, rewards, *_ = envs.step(np.array([3, 4]))
    assert observations == ("bbb", "bbbb")
    np.testing.assert_array_equal(rewards, [2.0, 2.0])  # the first step was executed
    envs.close()


# Requests


def test_oversized_request_is_not_sent():
    envs = talkative()
    envs.reset(seed=0)
    asked = envs.stats().requests
    with pytest.raises(ValueError, match=rf"\d+ bytes .* accepts at most {MAX_META}"):
        envs.call("tell", bytes(MAX_META))
    with pytest.raises(ValueError, match=f"accepts at most {MAX_META}"):
        envs.reset(options={"long": bytes(MAX_META)})
    assert envs.stats().requests == asked
    envs.step(np.array([1, 2]))
    envs.close()


@pytest.mark.parametrize("meta", [MAX_META + 1, 2**32 - 1])
@pytest.mark.parametrize("kind", [Kind.RESET, Kind.CALL, Kind.LATEST, Kind.CANCEL, Kind.STEP])
def test_oversized_request_ends_the_session_before_allocation(kind, meta):
    announced = {"meta": meta}
    if kind is Kind.STEP:
        announced |= {"rows": 2, "flags": 2, "body": 16}
    with (
        served(lambda: InlinePool([Talkative] * 2), TCP, max_meta=MAX_META) as it,
        Raw(it) as raw,
    ):

        def ask():
            raw.write(kind, announced=announced)
            raw.socket.settimeout(5.0)  # the server does not wait for the rest
            header, told = raw.read()
            assert header.kind is Kind.SESSION_ENDED
            assert f"the limit is {MAX_META}" in unpack_message(SessionEnded, told).message

        assert peak_of(ask) < LITTLE


# Messages that a client receives


class Announcing(Retelling):
    """Replaces a message by a header with an oversized meta part."""

    def __init__(self, port, kind, meta, changes):
        super().__init__(port, changes)
        self._kind, self._meta = kind, meta

    def altered(self, direction, header, message):
        if direction == REPLY and header.kind is self._kind:
            return pack_header(header._replace(meta=self._meta))
        return super().altered(direction, header, message)


@contextmanager
def announcing(kind, meta, welcome):
    """A vector whose server announces a meta part of this size."""
    with served(lambda: InlinePool([Talkative] * 2), TCP, max_meta=MAX_META) as it:
        port = int(it.rpartition("/")[0].rpartition(":")[2])
        proxy = Announcing(port, kind, meta, {Kind.SESSION_INFO: welcome})
        envs = shoal.connect(f"{proxy.url}/it", timeout=10.0, shared_memory=False)
        try:
            yield envs
        finally:
            envs.close()
            proxy.close()


@pytest.mark.parametrize(
    ("welcome", "limit"),
    [({}, MAX_META), ({"max_meta": 2**40}, 1 << 28)],
    ids=["more than agreed on", "more than a client ever reads"],
)
@pytest.mark.parametrize("kind", [Kind.REPLY, Kind.BATCH])
def test_oversized_response_is_rejected_before_allocation(
    kind, welcome, limit
):
    with announcing(kind, limit + 1, welcome) as envs:

        def ask():
            with pytest.raises(ProtocolError, match=f"the limit is {limit}$"):
                envs.reset() if kind is Kind.BATCH else envs.call("tell", 1)

        assert peak_of(ask) < LITTLE
        with pytest.raises(ConnectionError):
            envs.reset()


GREETING = plain(Kind.SERVER_HELLO, ServerHello(1, 1, b"n" * 32))


def announced(kind, meta=0, **fields):
    """The header of a handshake message without its content."""
    return Raw.message(None, kind, number=0, announced={"meta": meta, **fields})


FIRST_WORDS = {
    "a long greeting": [announced(Kind.SERVER_HELLO, (1 << 16) + 1)],
    "a greeting without end": [announced(Kind.SERVER_HELLO, 2**32 - 1)],
    "a greeting with a body": [announced(Kind.SERVER_HELLO, 10, body=2**63)],
    "a long refusal in its place": [announced(Kind.REJECTION, (1 << 16) + 1)],
    "a welcome in its place": [announced(Kind.SESSION_INFO, 10)],
    "a long welcome": [GREETING, announced(Kind.SESSION_INFO, (1 << 26) + 1)],
    "a welcome without end": [GREETING, announced(Kind.SESSION_INFO, 2**32 - 1)],
    "a welcome with a body": [GREETING, announced(Kind.SESSION_INFO, 10, body=1)],
    "a refusal without end": [GREETING, announced(Kind.REJECTION, 2**32 - 1)],
    "another greeting": [GREETING, GREETING],
}


@pytest.mark.parametrize("what", FIRST_WORDS)
def test_oversized_handshake_is_rejected_before_allocation(what):
    with fake_server(*FIRST_WORDS[what]) as (url, heard):

        def meet():
            with pytest.raises(ProtocolError, match="expected one of"):
                shoal.connect(url, timeout=20.0, token="secret")

        assert peak_of(meet) < LITTLE
    if len(FIRST_WORDS[what]) > 1:
        assert read_header(heard[0]).kind is Kind.CLIENT_HELLO
        assert unpack_message(ClientHello, heard[0][HEADER_BYTES:]).name == "it"


def test_long_rejection_message():
    """The size limit of handshake messages does not apply to rejections."""
    refusal = plain(Kind.REJECTION, Rejection("factory", "x" * 100_000))
    with fake_server(GREETING, refusal) as (url, _), pytest.raises(ConnectionError, match="x" * 99):
        shoal.connect(url, timeout=20.0)


def test_oversized_factory_arguments():
    with served(Factory()) as it, pytest.raises(ValueError, match="bytes of arguments"):
        shoal.connect(it, note="x" * 70_000)
