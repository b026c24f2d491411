"""Encodings of actions and outcomes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.remote.null import Actions, Outcome, step

__all__ = ["GYM_API", "RAW", "Codec"]


class Codec(NamedTuple):
    """The messages of a step: the client encodes, the server answers, the client decodes."""

    request: Callable[[Actions], str | bytes]
    answer: Callable[[Any], str | bytes]
    outcome: Callable[[Any], Outcome]


class _RawRequest(msgspec.Struct, array_like=True):
    actions: bytes


class _RawAnswer(msgspec.Struct, array_like=True):
    observations: bytes
    rewards: bytes
    terminated: bytes
    truncated: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(_RawRequest).decode
_decode_answer = msgspec.msgpack.Decoder(_RawAnswer).decode


def _raw_request(actions: Actions) -> bytes:
    return _encode(_RawRequest(actions.tobytes()))


def _raw_answer(message: bytes) -> bytes:
    actions = np.frombuffer(_decode_request(message).actions, np.int64)
    return _encode(_RawAnswer(*(array.tobytes() for array in step(actions))))


def _raw_outcome(message: bytes) -> Outcome:
    answer = _decode_answer(message)
    rewards = np.frombuffer(answer.rewards)
    return Outcome(
        np.frombuffer(answer.observations, np.float32).reshape(len(rewards), -1),
        rewards,
        np.frombuffer(answer.terminated, np.bool_),
        np.frombuffer(answer.truncated, np.bool_),
    )


RAW = Codec(_raw_request, _raw_answer, _raw_outcome)
"""The bytes of the arrays, in msgpack."""

_SERVICE = "/gym_api/step"
_ENV_NAME = "null"
_STEP = 1
_SUCCESS = 1
_ids = itertools.count()


def _json_request(actions: Actions) -> str:
    request = {
        "header": {"client_id": "benchmark", "request_type": _STEP},
        "seed": 0,
        "env_name": _ENV_NAME,
        "action": [
            {"ns": str(slot), "discrete_action": [action], "continuous_action": []}
            for slot, action in enumerate(actions.tolist())
        ],
    }
    call = {"op": "call_service", "service": _SERVICE, "args": request, "id": str(next(_ids))}
    return json.dumps(call)


def _json_answer(message: str) -> str:
    call = json.loads(message)
    actions = call["args"]["action"]
    outcome = step(np.array([action["discrete_action"][0] for action in actions], np.int64))
    response = {
        "header": {
            "process_duration": 0.0,
            "transport_duration": 0.0,
            "error_code": {"value": _SUCCESS},
            "error_msg": "",
        },
        "feedback": [
            {
                "ns": action["ns"],
                "observation": observation,
                "reward": reward,
                "terminated": terminated,
                "truncated": truncated,
                "executed": True,
                "duplicate": False,
                "info": "{}",
            }
            for action, observation, reward, terminated, truncated in zip(
                actions, *(array.tolist() for array in outcome), strict=True
            )
        ],
    }
    return json.dumps(
        {
            "op": "service_response",
            "service": call["service"],
            "values": response,
            "result": True,
            "id": call["id"],
        }
    )


def _json_outcome(message: str) -> Outcome:
    feedback = json.loads(message)["values"]["feedback"]
    return Outcome(
        np.array([slot["observation"] for slot in feedback], np.float32),
        np.array([slot["reward"] for slot in feedback], np.float64),
        np.array([slot["terminated"] for slot in feedback], np.bool_),
        np.array([slot["truncated"] for slot in feedback], np.bool_),
    )


GYM_API = Codec(_json_request, _json_answer, _json_outcome)
"""JSON in the format of GymAPI, in the messages of rosbridge."""
