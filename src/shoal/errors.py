"""What Shoal raises, and what each error says about whose fault it was.

Several classes have two parents. The first says what happened in Gymnasium's own terms; the
others are what the systems that Shoal stands in for would have raised at that place, so that an
``except`` clause written for them still catches it. (Gymnasium before 1.3 checked its arguments by
``assert``, which is where the ``AssertionError`` parents come from.)
"""

from __future__ import annotations

import multiprocessing

import gymnasium.error

__all__ = [
    "ActionTypeError",
    "AuthenticationError",
    "CheckpointError",
    "ClusterError",
    "ConfigError",
    "ConnectionLostError",
    "FactoryPicklingError",
    "InvalidActionError",
    "InvalidSettingError",
    "KernelDefinitionError",
    "KernelError",
    "LeaseError",
    "MissingExtraError",
    "NotAnEnvironmentError",
    "ObservationError",
    "ProtocolError",
    "ReceiveTimeoutError",
    "RefusedError",
    "RemoteError",
    "ResetMaskError",
    "SeedError",
    "SessionLostError",
    "SlotFinishedError",
    "SlotInFlightError",
    "SlotNotResetError",
    "SpaceMismatchError",
    "StepResultError",
    "StepTimeoutError",
    "StoppedVectorError",
    "UnknownGameError",
    "VectorFailedError",
    "WorkerCrashedError",
]


class InvalidActionError(gymnasium.error.InvalidAction, ValueError, TypeError):
    """Actions of the wrong number, shape or range. No environment was stepped."""


class ActionTypeError(gymnasium.error.InvalidAction, TypeError):
    """Actions of a dtype that the action space cannot hold. No environment was stepped."""


class NotAnEnvironmentError(TypeError, AttributeError):
    """A function that is to make an environment has made something else."""


class ObservationError(ValueError, TypeError):
    """An environment returned an observation that does not fit its observation space."""


class StepResultError(ValueError, TypeError):
    """An environment's ``step`` or ``reset`` returned something else than Gymnasium asks for."""


class SlotFinishedError(gymnasium.error.ResetNeeded, AssertionError):
    """With autoreset disabled, a slot was stepped after its episode had ended."""


class SlotInFlightError(gymnasium.error.AlreadyPendingCallError):
    """A slot was asked for something while it is in flight: it must be received first."""

    def __init__(self, message: str, name: str = "recv") -> None:
        super().__init__(message, name)


class StoppedVectorError(gymnasium.error.ClosedEnvironmentError):
    """A vector was used after it was closed, or while the interpreter is ending."""


class SlotNotResetError(gymnasium.error.ResetNeeded, RuntimeError, AssertionError):
    """A slot was stepped before its first reset."""


class KernelDefinitionError(ValueError, TypeError):
    """A kernel does not say of itself what it must, or it does not fit its spaces."""


class KernelError(RuntimeError):
    """A kernel has reported a failure in a slot. The other slots of the batch have been stepped."""


class SpaceMismatchError(RuntimeError, ValueError, TypeError, AssertionError):
    """Environments of one vector have spaces that cannot be batched together."""


class ResetMaskError(ValueError, TypeError, AssertionError):
    """``options["reset_mask"]`` is not a boolean array that selects slots which can be reset."""


class SeedError(gymnasium.error.Error, ValueError, TypeError, AssertionError):
    """Seeds of the wrong number or kind."""


class ReceiveTimeoutError(TimeoutError, multiprocessing.TimeoutError):
    """Slots were not done in time. They are still in flight, and nothing is lost."""


class ClusterError(RuntimeError):
    """Ray cannot be joined, or has no room for what was asked for."""


class WorkerCrashedError(RuntimeError):
    """A worker has ended, or was killed, in the middle of its work."""


class StepTimeoutError(WorkerCrashedError, TimeoutError):
    """An environment has taken longer than ``step_timeout``, and its worker was ended."""


class RemoteError(Exception):
    """Stands in for an exception of a worker that could not be brought over as it was.

    What is raised is a class derived from this one and from the built-in exception that the
    original was derived from, under the original's name.
    """


class FactoryPicklingError(TypeError):
    """A function that makes an environment cannot be sent to a worker process."""


class VectorFailedError(RuntimeError):
    """An environment of the vector has failed before, and the vector does not go on without it."""


class MissingExtraError(gymnasium.error.DependencyNotInstalled, ImportError):
    """Something that Shoal can do without is not installed; the message says how to get it."""


class UnknownGameError(gymnasium.error.NameNotFound, ValueError, AssertionError):
    """There is no Atari game of this name, or none for one player."""


class InvalidSettingError(gymnasium.error.Error, ValueError):
    """A setting of an Atari vector that cannot be. Nothing was made."""


class ConfigError(ValueError):
    """A training config that cannot be; the message names where it is wrong."""


class NotFiniteError(ValueError):
    """A number in training that is not finite: of an environment, or made by updates."""


class RunInUseError(RuntimeError):
    """A training run that somebody else goes on with at the same time."""


class CheckpointError(RuntimeError):
    """A checkpoint, or the file of an agent, that cannot be written or read."""


class ProtocolError(ConnectionError, ValueError):
    """The other end of a connection has said something that it must not say."""


class RefusedError(ConnectionError):
    """A server has refused a session; the message says why, and ``reason`` in one word."""

    reason = ""


class AuthenticationError(RefusedError, PermissionError):
    """A server has refused a session since the token was not the right one."""


class LeaseError(RefusedError):
    """A device has another owner, or had a new one."""


class ConnectionLostError(ConnectionError):
    """A connection was lost. Whether the steps in flight have been executed is not known."""


class SessionLostError(ConnectionLostError):
    """A server does not know a session any more: its environments are gone."""
