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
from tests.remote.mutations import MAX_REJECT_MEMORY, peak_of
from tests.remote.peers import Raw, fake_server, unnumbered_message
from tests.remote.proxy import RESPONSE, RewritingProxy
from tests.remote.serving import TCP, Factory, connected, served

MAX_META = 5000
"""Bytes; far more than an ordinary message needs."""


class InfoEnv(gymnasium.Env):
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
        info = {"data": bytes(action)} if action else {}
        return np.float64(self._steps), 1.0, False, False, info

    def data(self, count):
        return bytes(count)


class TextEnv(InfoEnv):
    """Takes the length of the observation, a string, as action."""

    observation_space = spaces.Text(1_000_000)

    def reset(self, *, seed=None, options=None):
        return "a", {}

    def step(self, action):
        self._steps += 1
        return "b" * max(1, action), float(self._steps), False, False, {}


def info_envs(env=InfoEnv, **options):
    return connected(
        lambda: InlinePool([env] * 2), server={"max_meta": MAX_META}, timeout=5.0, **options
    )


# Responses


def test_oversized_results_are_an_error():
    envs = info_envs()
    assert envs.call("data", 2000) == (bytes(2000),) * 2
    with pytest.raises(
        ValueError, match=rf"results have \d+ bytes, but at most {MAX_META} can be sent"
    ):
        envs.call("data", MAX_META)
    assert envs.call("data", 1) == (b"\0", b"\0")
    envs.close()


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("how", ["step", "send"])
def test_oversized_infos_are_not_sent(how, on_lost):
    envs = info_envs(on_lost=on_lost)
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
            assert sum(map(len, infos.get("data", ()))) == sum(sizes)
    envs.close()


def test_oversized_observations_without_fixed_shape_are_an_error():
    envs = info_envs(TextEnv)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=rf"\d+ bytes .*, but at most {MAX_META} can be sent"):
        envs.step(np.array([1, MAX_META]))
    observations, rewards, *_ = envs.step(np.array([3, 4]))
    assert observations == ("bbb", "bbbb")
    np.testing.assert_array_equal(rewards, [2.0, 2.0])  # the first step was executed
    envs.close()


# Requests


def test_oversized_request_is_not_sent():
    envs = info_envs()
    envs.reset(seed=0)
    requests = envs.stats().requests
    with pytest.raises(ValueError, match=rf"\d+ bytes .* accepts at most {MAX_META}"):
        envs.call("data", bytes(MAX_META))
    with pytest.raises(ValueError, match=f"accepts at most {MAX_META}"):
        envs.reset(options={"long": bytes(MAX_META)})
    assert envs.stats().requests == requests
    envs.step(np.array([1, 2]))
    envs.close()


@pytest.mark.parametrize("meta", [MAX_META + 1, 2**32 - 1])
@pytest.mark.parametrize("kind", [Kind.RESET, Kind.CALL, Kind.LATEST, Kind.CANCEL, Kind.STEP])
def test_oversized_request_ends_the_session_before_allocation(kind, meta):
    overrides = {"meta": meta}
    if kind is Kind.STEP:
        overrides |= {"rows": 2, "flags": 2, "body": 16}
    with (
        served(lambda: InlinePool([InfoEnv] * 2), TCP, max_meta=MAX_META) as it,
        Raw(it) as raw,
    ):

        def ask():
            raw.write(kind, overrides=overrides)
            raw.socket.settimeout(5.0)  # the server does not wait for the rest
            header, content = raw.read()
            assert header.kind is Kind.SESSION_ENDED
            assert f"the limit is {MAX_META}" in unpack_message(SessionEnded, content).message

        assert peak_of(ask) < MAX_REJECT_MEMORY


# Messages that a client receives


class OversizedMetaProxy(RewritingProxy):
    """Replaces a message by a header with an oversized meta part."""

    def __init__(self, port, kind, meta, changes):
        super().__init__(port, changes)
        self._kind, self._meta = kind, meta

    def rewrite(self, direction, header, message):
        if direction == RESPONSE and header.kind is self._kind:
            return pack_header(header._replace(meta=self._meta))
        return super().rewrite(direction, header, message)


@contextmanager
def announcing_server(kind, meta, info):
    """A vector whose server announces a meta part of this size."""
    with served(lambda: InlinePool([InfoEnv] * 2), TCP, max_meta=MAX_META) as it:
        port = int(it.rpartition("/")[0].rpartition(":")[2])
        proxy = OversizedMetaProxy(port, kind, meta, {Kind.SESSION_INFO: info})
        envs = shoal.connect(f"{proxy.url}/it", timeout=10.0, shared_memory=False)
        try:
            yield envs
        finally:
            envs.close()
            proxy.close()


@pytest.mark.parametrize(
    ("info", "limit"),
    [({}, MAX_META), ({"max_meta": 2**40}, 1 << 28)],
    ids=["more than announced by the server", "more than the limit of the client"],
)
@pytest.mark.parametrize("kind", [Kind.REPLY, Kind.BATCH])
def test_oversized_response_is_rejected_before_allocation(kind, info, limit):
    with announcing_server(kind, limit + 1, info) as envs:

        def ask():
            with pytest.raises(ProtocolError, match=f"the limit is {limit}$"):
                envs.reset() if kind is Kind.BATCH else envs.call("data", 1)

        assert peak_of(ask) < MAX_REJECT_MEMORY
        with pytest.raises(ConnectionError):
            envs.reset()


SERVER_HELLO_MESSAGE = unnumbered_message(Kind.SERVER_HELLO, ServerHello(1, 1, b"n" * 32))


def header_only(kind, meta=0, **fields):
    """The header of a handshake message without its content."""
    return Raw.message(None, kind, number=0, overrides={"meta": meta, **fields})


HANDSHAKE = {
    "a long server hello": [header_only(Kind.SERVER_HELLO, (1 << 16) + 1)],
    "a huge server hello": [header_only(Kind.SERVER_HELLO, 2**32 - 1)],
    "a server hello with a body": [header_only(Kind.SERVER_HELLO, 10, body=2**63)],
    "a long rejection first": [header_only(Kind.REJECTION, (1 << 16) + 1)],
    "a session info first": [header_only(Kind.SESSION_INFO, 10)],
    "a long session info": [SERVER_HELLO_MESSAGE, header_only(Kind.SESSION_INFO, (1 << 26) + 1)],
    "a huge session info": [SERVER_HELLO_MESSAGE, header_only(Kind.SESSION_INFO, 2**32 - 1)],
    "a session info with a body": [
        SERVER_HELLO_MESSAGE,
        header_only(Kind.SESSION_INFO, 10, body=1),
    ],
    "a huge rejection": [SERVER_HELLO_MESSAGE, header_only(Kind.REJECTION, 2**32 - 1)],
    "a second server hello": [SERVER_HELLO_MESSAGE, SERVER_HELLO_MESSAGE],
}


@pytest.mark.parametrize("what", HANDSHAKE)
def test_oversized_handshake_is_rejected_before_allocation(what):
    with fake_server(*HANDSHAKE[what]) as (url, received):

        def meet():
            with pytest.raises(ProtocolError, match="expected one of"):
                shoal.connect(url, timeout=20.0, token="secret")

        assert peak_of(meet) < MAX_REJECT_MEMORY
    if len(HANDSHAKE[what]) > 1:
        assert read_header(received[0]).kind is Kind.CLIENT_HELLO
        assert unpack_message(ClientHello, received[0][HEADER_BYTES:]).name == "it"


def test_long_rejection_message():
    """The size limit of handshake messages does not apply to rejections."""
    refusal = unnumbered_message(Kind.REJECTION, Rejection("factory", "x" * 100_000))
    with (
        fake_server(SERVER_HELLO_MESSAGE, refusal) as (url, _),
        pytest.raises(ConnectionError, match="x" * 99),
    ):
        shoal.connect(url, timeout=20.0)


def test_oversized_factory_arguments():
    with served(Factory()) as it, pytest.raises(ValueError, match="bytes of arguments"):
        shoal.connect(it, note="x" * 70_000)
