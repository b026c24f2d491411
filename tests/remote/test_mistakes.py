"""Invalid arguments raise clear errors before anything is sent."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import AuthenticationError, ConnectionLostError, InvalidActionError
from shoal.pools import InlinePool
from shoal.remote import Device
from tests.remote.peers import Cell
from tests.remote.serving import TCP, Factory, connected, served


def test_hosted_must_be_a_dict():
    with pytest.raises(TypeError, match=r"\{name: factory\}"):
        shoal.serve(Factory(), TCP)


@pytest.mark.parametrize("token", [5, b"secret"])
def test_token_must_be_a_string(token):
    with pytest.raises(TypeError, match="the token must be a string"):
        shoal.serve({"it": Factory()}, TCP, token=token)
    with pytest.raises(TypeError, match="the token must be a string"):
        shoal.connect("tcp://127.0.0.1:1/it", token=token)


def test_missing_and_wrong_token():
    with served(Factory(), TCP, token="secret") as it:
        with pytest.raises(AuthenticationError, match="a token is required"):
            shoal.connect(it)
        with pytest.raises(AuthenticationError, match="the token is wrong"):
            shoal.connect(it, token="guess")


def test_priority_must_be_an_integer():
    with pytest.raises(TypeError, match="priority must be an integer, got 'high'"):
        shoal.connect("tcp://127.0.0.1:1/it", priority="high")


@pytest.mark.parametrize("deadlines", [[1.0, 2.0], "soon", [[1.0] * 3], [1.0, -1.0, 1.0], np.nan])
def test_invalid_deadlines(deadlines):
    cell = Cell()
    envs = connected(lambda: cell)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="a positive number of seconds, or 3 of them"):
        envs.step([0, 0, 0], deadlines=deadlines)
    assert cell.executed == []
    envs.close()


@pytest.mark.parametrize("actions", [None, "up", [0], object()])
def test_invalid_actions_raise_as_in_a_local_vector(actions):
    with served(Factory(), TCP) as it, shoal.connect(it) as envs:
        envs.reset(seed=0)
        with pytest.raises((InvalidActionError, TypeError, ValueError)) as caught:
            envs.step(actions)
        assert "nanobind" not in str(caught.value)
        assert "incompatible function arguments" not in str(caught.value)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, "x"])
def test_invalid_batch_size(batch_size):
    with (
        served(Factory(), TCP) as it,
        pytest.raises((TypeError, ValueError), match="batch_size"),
    ):
        shoal.connect(it, batch_size=batch_size)


def test_missing_folder_of_unix_socket(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere/socket"):
        shoal.serve({"it": Factory()}, f"unix://{tmp_path}/nowhere/socket")


@pytest.mark.parametrize("tls", ["no.pem", ("no.pem", "no.key", "no.pem")])
def test_missing_tls_files(tls):
    with pytest.raises(FileNotFoundError, match=r"no file no\.pem"):
        shoal.connect("tls://127.0.0.1:1/it", tls=tls, timeout=1.0)


def test_value_that_cannot_be_sent():
    with served(Factory(), TCP) as it, shoal.connect(it) as envs:
        with pytest.raises(TypeError, match=r"its dtype is datetime64\[D\]"):
            envs.reset(options={"since": np.datetime64("2020-01-01")})
        with pytest.raises(TypeError, match="its type is set"):
            envs.reset(options={"which": {1, 2}})


class Empty(gymnasium.Env):
    """Has observations of zero bytes."""

    observation_space = spaces.Box(0, 1, (0, 3), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros((0, 3), np.float32), {}

    def step(self, action):
        return np.zeros((0, 3), np.float32), float(action), False, False, {}


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("shared_memory", [False, True])
def test_observations_of_zero_bytes(shared_memory, on_lost):
    with (
        served(lambda: InlinePool([Empty] * 3), TCP) as it,
        shoal.connect(it, timeout=5.0, shared_memory=shared_memory, on_lost=on_lost) as envs,
    ):
        assert envs.reset(seed=0)[0].shape == (3, 0, 3)
        for _ in range(20):
            observations, rewards, *_ = envs.step([0, 1, 1])
            assert observations.shape == (3, 0, 3)
            assert rewards.tolist() == [0.0, 1.0, 1.0]


def test_device_attributes():
    cell = Cell()
    assert isinstance(cell, Device)
    envs = connected(lambda: cell)
    envs.set_attr("reset_seconds", 0.5)
    assert envs.get_attr("reset_seconds") == (0.5,) * 3
    assert cell.reset_seconds == 0.5
    cell.reset_seconds = 0.0
    envs.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_reason_for_the_end_of_a_session():
    def leave(*_):
        raise SystemExit("enough")

    pool = InlinePool([Empty])
    pool.step = leave
    with served(lambda: pool, TCP) as it, shoal.connect(it, timeout=5.0) as envs:
        envs.reset(seed=0)
        with pytest.raises(ConnectionLostError, match="SystemExit: enough"):
            envs.step([0])
