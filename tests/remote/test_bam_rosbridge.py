"""The GymAPI over a rosbridge server."""

import json
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.env_checker import data_equivalence

from shoal.errors import (
    MissingExtraError,
    ReceiveTimeoutError,
)
from shoal.remote.bam import (
    GymAPIError,
    GymAPIRequest,
    GymFeedback,
    MessageError,
    MockEnv,
    MockTransport,
    RequestType,
    RosbridgeTransport,
    make_bam_vec_env,
)
from shoal.remote.bam._messages import from_dict, to_dict
from tests.remote.gymapi import (
    request,
    response,
)


class Rosbridge:
    """A small rosbridge server that passes calls to ``answer(call, send)``."""

    def __init__(self, answer):
        self.calls = []
        self.connections = 0
        self._answer = answer

    def serve(self, websocket):
        self.connections += 1
        for text in websocket:
            call = json.loads(text)
            self.calls.append(call)
            self._answer(call, lambda reply: websocket.send(json.dumps(reply)))


@contextmanager
def rosbridge(answer):
    from websockets.sync.server import serve

    bridge = Rosbridge(answer)
    with serve(bridge.serve, "localhost", 0, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        bridge.port = server.socket.getsockname()[1]
        try:
            yield bridge
        finally:
            server.shutdown()
            thread.join()


def service_response(call, values, **more):
    reply = {"op": "service_response", "service": call["service"], "id": call["id"]}
    return reply | {"values": values, "result": True} | more


def mocked(transport):
    def answer(call, send):
        got = transport.step(from_dict(call["args"], GymAPIRequest))
        send(service_response(call, to_dict(got)))

    return answer


def test_rollout_over_rosbridge_equals_local_rollout():
    def run(transport, count=3):
        seen = []
        with make_bam_vec_env(MockEnv, count, transport=transport, obs=True, color=True) as envs:
            envs.action_space.seed(0)
            seen.append(envs.reset(seed=11))
            for _ in range(4):
                seen.append(envs.step(envs.action_space.sample()))
        return seen

    robot = MockTransport()
    robot.declare(MockEnv(obs=True, color=True).observation_space, spaces.Discrete(2), 3)
    with rosbridge(mocked(robot)) as bridge:
        there = run(RosbridgeTransport("cell", "arm", port=bridge.port))
    assert data_equivalence(there, run(MockTransport()))
    assert bridge.connections == 1
    assert {call["op"] for call in bridge.calls} == {"call_service"}
    assert {call["service"] for call in bridge.calls} == {"/cell/arm/gym_api_request"}
    assert {call["type"] for call in bridge.calls} == {"bam_msgs/GymAPI"}
    assert len({call["id"] for call in bridge.calls}) == len(bridge.calls) == 6
    assert bridge.calls[-1]["args"]["header"]["request_type"] == RequestType.CLOSE


@pytest.mark.parametrize(
    ("namespace", "service"),
    [
        ("", "/gym_env/gym_api_request"),
        ("cell", "/cell/gym_env/gym_api_request"),
        ("/a/b/", "/a/b/gym_env/gym_api_request"),
    ],
)
def test_service_name(namespace, service):
    assert RosbridgeTransport(namespace).service == service


def test_late_response_is_discarded_after_timeout():
    late = []

    def answer(call, send):
        number = call["args"]["seed"]
        reply = service_response(call, to_dict(response(GymFeedback(reward=float(number)))))
        if number == 1:
            late.append(reply)
            return
        for each in (*late, {"op": "status", "level": "info", "msg": "hello"}, reply):
            send(each)

    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port, timeout_sec=0.2)
        start = time.monotonic()
        with pytest.raises(ReceiveTimeoutError, match=r"0\.2 seconds"):
            transport.step(request(RequestType.RESET, seed=1))
        assert time.monotonic() - start < 2
        got = transport.step(request(RequestType.RESET, seed=2))
        assert got.feedback[0].reward == 2.0
        transport.close()
    assert bridge.connections == 1


def test_expected_duration_extends_the_timeout():
    def answer(call, send):
        time.sleep(0.4)
        send(service_response(call, to_dict(response())))

    step = request(RequestType.STEP)
    step.header.expected_duration = 2.0
    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port, timeout_sec=0.2)
        transport.step(step)
        with pytest.raises(ReceiveTimeoutError):
            transport.step(request(RequestType.STEP))
        transport.close()


def test_idle_connection_outlives_the_timeout():
    answer = lambda call, send: send(service_response(call, to_dict(response())))  # noqa: E731
    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port, timeout_sec=0.2)
        for _ in range(2):
            transport.step(request(RequestType.RESET))
            time.sleep(0.4)
        transport.close()
    assert bridge.connections == 1


def test_other_messages_do_not_extend_the_timeout():
    def answer(call, send):
        for _ in range(20):
            send({"op": "status", "level": "info", "msg": "still here"})
            time.sleep(0.05)

    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port, timeout_sec=0.2)
        start = time.monotonic()
        with pytest.raises(ReceiveTimeoutError):
            transport.step(request(RequestType.RESET))
        assert time.monotonic() - start < 0.8
        transport.close()


@pytest.mark.parametrize(
    ("reply", "error", "why"),
    [
        ({"result": False, "values": "no such service"}, GymAPIError, "no such service"),
        ({"op": "status", "level": "error", "msg": "what?"}, GymAPIError, r"what\?"),
        ({"values": {"header": {"error_msg": 3}, "feedback": []}}, MessageError, "error_msg"),
        ({"values": None}, MessageError, "GymAPIResponse"),
    ],
)
def test_invalid_responses(reply, error, why):
    with rosbridge(lambda call, send: send(service_response(call, {}) | reply)) as bridge:
        transport = RosbridgeTransport(port=bridge.port)
        with pytest.raises(error, match=why):
            transport.step(request(RequestType.RESET))
        transport.close()


def test_special_floats_of_rosbridge_and_python():
    def answer(call, send):  # json.dumps writes the literals NaN and -Infinity
        observation = [None, float("nan"), float("-inf")]
        send(service_response(call, {"header": {}, "feedback": [{"observation": observation}]}))

    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port)
        (got,) = transport.step(request(RequestType.RESET)).feedback
        np.testing.assert_array_equal(got.observation, [np.nan, np.nan, -np.inf])
        transport.close()


def test_large_messages():
    picture = [255.0] * 600_000
    values = to_dict(response(GymFeedback(observation=picture)))
    with rosbridge(lambda call, send: send(service_response(call, values))) as bridge:
        transport = RosbridgeTransport(port=bridge.port)
        assert transport.step(request(RequestType.RESET)).feedback[0].observation == picture
        transport.close()


def test_reconnect_on_next_request():
    class Hangup(Exception):
        pass

    def answer(call, send):
        if call["args"]["seed"] == 1:
            raise Hangup
        send(service_response(call, to_dict(response())))

    with rosbridge(answer) as bridge:
        transport = RosbridgeTransport(port=bridge.port)
        with pytest.raises(ConnectionError):
            transport.step(request(RequestType.STEP, seed=1))
        transport.step(request(RequestType.STEP, seed=2))
        transport.close()
    assert bridge.connections == 2
    assert len(bridge.calls) == 2  # the first call was not repeated


def test_connection_refused():
    with rosbridge(mocked(MockTransport())) as bridge:
        pass
    transport = RosbridgeTransport(port=bridge.port)
    with pytest.raises(ConnectionError, match=str(bridge.port)):
        transport.step(request(RequestType.RESET))


def test_closed_transport_raises():
    transport = RosbridgeTransport(port=1)
    transport.close()
    transport.close()
    with pytest.raises(ClosedEnvironmentError):
        transport.step(request(RequestType.RESET))


def test_missing_websockets_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "websockets"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "websockets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "shoal\[remote\]"'):
        RosbridgeTransport()
