"""Messages and transports for the tests of the GymAPI."""

import threading

import numpy as np
from gymnasium import spaces

from shoal.remote.bam import (
    ErrorCode,
    ErrorType,
    GenericGymClient,
    GymAPIRequest,
    GymAPIResponse,
    MockTransport,
    RequestHeader,
    RequestType,
    ResponseHeader,
)

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


def request(kind, action=(), seed=0):
    return GymAPIRequest(header=RequestHeader(request_type=kind), seed=seed, action=list(action))


def response(*feedback, code=ErrorType.SUCCESS, message=""):
    header = ResponseHeader(error_code=ErrorCode(value=code), error_msg=message)
    return GymAPIResponse(header=header, feedback=list(feedback))


class RecordingTransport(MockTransport):
    """Records requests."""

    def __init__(self):
        super().__init__()
        self.requests = []
        self.closed = 0

    def step(self, request):
        self.requests.append(request)
        return super().step(request)

    def close(self):
        self.closed += 1


class ScriptedTransport(RecordingTransport):
    """Returns responses from a list, and then those of a mock."""

    def __init__(self, *responses):
        super().__init__()
        self.responses = list(responses)

    def step(self, request):
        if self.responses and request.header.request_type is not RequestType.CLOSE:
            self.requests.append(request)
            return self.responses.pop(0)
        return super().step(request)


class GatedTransport(RecordingTransport):
    """Blocks STEP requests while its gate is closed."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()

    def step(self, request):
        if request.header.request_type is RequestType.STEP:
            self.started.set()
            assert self.gate.wait(20.0)
        return super().step(request)


class FailingTransport(RecordingTransport):
    """Raises ``fails``, or returns it as the message of a failure, while it is set."""

    def __init__(self):
        super().__init__()
        self.fails = None

    def step(self, request):
        if self.fails is None or request.header.request_type is RequestType.CLOSE:
            return super().step(request)
        self.requests.append(request)
        if isinstance(self.fails, str):
            return response(code=ErrorType.FAILURE, message=self.fails)
        raise self.fails


def requested_slots(transport, kind=RequestType.STEP):
    """Return the slots of each recorded request of a type."""
    return [
        [int(action.ns) for action in each.action]
        for each in transport.requests
        if each.header.request_type is kind
    ]


def scripted(*responses, **kwargs):
    spaces_ = {"observation_space": BOX, "action_space": spaces.Discrete(2)}
    return GenericGymClient(ScriptedTransport(*responses), **spaces_ | kwargs)
