"""Access control for clients, and the content of errors."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import shoal
from shoal.errors import ProtocolError, RefusedError
from shoal.pools import InlinePool
from shoal.remote._messages import (
    CallRequest,
    pack_message,
)
from shoal.remote._value_codec import pack_values
from shoal.remote._wire import Kind
from shoal.testing import ProbeEnv
from tests.remote.peers import fake_server
from tests.remote.serving import connected, served


class SecretiveEnv(ProbeEnv):
    _secret = 42

    def echo(self, name):
        return name


PRIVATE = ["_secret", "__class__", "__dict__", "_fail_at"]


def raw_call(envs, what, is_function, args, kwargs):
    call = vars(type(envs.pool)).get("_call")
    assert call is not None  # an AttributeError would look like a rejection
    request = CallRequest(what, is_function, (0,), pack_values([args, kwargs]))
    return call(envs.pool, Kind.CALL, pack_message(request))


@pytest.mark.parametrize("name", PRIVATE)
def test_private_names_are_not_accessible(name):
    envs = connected(lambda: shoal.make(SecretiveEnv, 2, backend="inline"), timeout=5.0)
    reaches = [
        lambda: envs.call(name),
        lambda: envs.get_attr(name),
        lambda: envs.set_attr(name, 1),
        lambda: envs.call("get_wrapper_attr", name),
        lambda: envs.call("set_wrapper_attr", name, 1),
        lambda: envs.call("get_wrapper_attr", name=name),
        lambda: raw_call(envs, "get_attribute", True, [name], {}),
        lambda: raw_call(envs, "get_attribute", True, [], {"name": name}),
        lambda: raw_call(envs, "get_attribute", False, [name], {}),
        lambda: raw_call(envs, "set_attribute", True, [name, 1], {}),
        lambda: raw_call(envs, "call_method", True, [name, (), {}], {}),
        lambda: raw_call(envs, "call_method", True, ["get_wrapper_attr", (name,), {}], {}),
        lambda: raw_call(envs, "call_method", True, ["get_wrapper_attr", (), {"name": name}], {}),
        lambda: raw_call(envs, "call_method", True, ["set_wrapper_attr", (name, 1), {}], {}),
        lambda: raw_call(envs, "get_attribute", True, [(name,)], {}),
        lambda: raw_call(envs, "get_attribute", True, [np.array(name)], {}),
        lambda: raw_call(envs, "get_attribute", True, [np.str_(name)], {}),
    ]
    for place_, reach in enumerate(reaches):
        with pytest.raises((AttributeError, TypeError)):
            pytest.fail(f"{place_}: {reach()!r}")
    assert envs.call("echo", name) == (name, name)  # an ordinary argument
    assert SecretiveEnv._secret == 42
    envs.close()


@pytest.mark.parametrize("what", ["eval", "class_name", "get_attribute.__globals__", "", "open"])
def test_only_allowed_functions_can_be_called(what):
    envs = connected(lambda: InlinePool([ProbeEnv]), timeout=5.0)
    with pytest.raises((AttributeError, TypeError)):
        raw_call(envs, what, True, ["label"], {})
    assert envs.call("label") == (0,)
    envs.close()


def test_functions_cannot_be_sent():
    envs = connected(lambda: InlinePool([ProbeEnv]), timeout=5.0)
    with pytest.raises(TypeError, match="pass the name"):
        envs.pool.call(lambda env: env.label)
    envs.close()


class Failing(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        raise ZeroDivisionError("the cell is jammed")

    def fails(self):
        raise LookupError("nothing there")


@pytest.mark.parametrize("with_traceback", [False, True])
def test_tracebacks_are_sent_only_if_enabled(with_traceback):
    envs = connected(
        lambda: InlinePool([Failing]),
        server={"tracebacks": with_traceback} if with_traceback else {},
        timeout=5.0,
    )
    envs.reset(seed=0)
    for reach, kind in (
        (lambda: envs.step([0]), ZeroDivisionError),
        (lambda: envs.call("fails"), LookupError),
    ):
        with pytest.raises(kind) as caught:
            reach()
        text = f"{caught.value.__cause__} {getattr(caught.value, '__notes__', '')} {caught.value}"
        assert (Path(__file__).name in text) is with_traceback
    envs.close()


@pytest.mark.parametrize("with_traceback", [False, True])
def test_factory_tracebacks_are_sent_only_if_enabled(with_traceback):
    def factory():
        raise ZeroDivisionError("no cell")

    with served(factory, tracebacks=with_traceback) as it:
        with pytest.raises(RefusedError, match="ZeroDivisionError: no cell") as caught:
            shoal.connect(it)
        text = f"{caught.value.__cause__} {getattr(caught.value, '__notes__', '')} {caught.value}"
        if not with_traceback:
            assert Path(__file__).name not in text


@pytest.mark.parametrize(
    "builtin", ["eval", "exec", "print", "SystemExit", "KeyboardInterrupt", "x"]
)
def test_unknown_exceptions_are_remote_errors(builtin):
    from shoal._error_description import ErrorDescription, stand_in

    error = stand_in(ErrorDescription("Boom", "echo", builtin, [], ""))
    assert isinstance(error, Exception)
    assert isinstance(error, shoal.errors.RemoteError)


def test_false_exception_names_are_not_trusted():
    from shoal.remote._error_codec import decode_error
    from shoal.remote._messages import Failure

    for name in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "eval", "int", "a\0b", ""):
        error = decode_error(Failure(name, name, "lies", (), "", True))
        assert isinstance(error, Exception)


def test_invalid_header_is_a_protocol_error():
    with (
        fake_server(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 100) as (url, _),
        pytest.raises(ProtocolError, match="invalid message header"),
    ):
        shoal.connect(url, timeout=3.0)
