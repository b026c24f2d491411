"""The exceptions that Shoal raises.

Several classes have more than one parent. The first is Gymnasium's exception for the error. The
others are the exceptions that Stable-Baselines3, ale-py and others raise in the same situation, so
that ``except`` clauses written for them keep working. ``AssertionError`` is a parent because
Gymnasium before 1.3 checked its arguments with ``assert``.
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
    """Actions have the wrong number, shape or range. No environment was stepped."""


class ActionTypeError(gymnasium.error.InvalidAction, TypeError):
    """Actions have a dtype that the action space cannot hold. No environment was stepped."""


class NotAnEnvironmentError(TypeError, AttributeError):
    """A factory function returned an object that is not an environment."""


class ObservationError(ValueError, TypeError):
    """An environment returned an observation that does not fit its observation space."""


class StepResultError(ValueError, TypeError):
    """An environment's ``step`` or ``reset`` returned a value that violates the Gymnasium API."""


class SlotFinishedError(gymnasium.error.ResetNeeded, AssertionError):
    """With autoreset disabled, a slot was stepped after its episode had ended."""


class SlotInFlightError(gymnasium.error.AlreadyPendingCallError):
    """An operation was requested for a slot in flight, which must be received first."""

    def __init__(self, message: str, name: str = "recv") -> None:
        super().__init__(message, name)


class StoppedVectorError(gymnasium.error.ClosedEnvironmentError):
    """A vector was used after it was closed, or during interpreter shutdown."""


class SlotNotResetError(gymnasium.error.ResetNeeded, RuntimeError, AssertionError):
    """A slot was stepped before its first reset."""


class KernelDefinitionError(ValueError, TypeError):
    """A kernel's definition is incomplete, or does not fit its spaces."""


class KernelError(RuntimeError):
    """A kernel reported a failure in a slot. The other slots of the batch were stepped."""


class SpaceMismatchError(RuntimeError, ValueError, TypeError, AssertionError):
    """Environments of one vector have spaces that cannot be batched together."""


class ResetMaskError(ValueError, TypeError, AssertionError):
    """``options["reset_mask"]`` is not a boolean array, or selects slots that cannot be reset."""


class SeedError(gymnasium.error.Error, ValueError, TypeError, AssertionError):
    """Seeds of the wrong number or kind."""


class ReceiveTimeoutError(TimeoutError, multiprocessing.TimeoutError):
    """Slots were not done before the timeout. They are still in flight; no result is lost."""


class ClusterError(RuntimeError):
    """Ray cannot be joined, or lacks the requested resources."""


class WorkerCrashedError(RuntimeError):
    """A worker exited or was killed while it was stepping."""


class StepTimeoutError(WorkerCrashedError, TimeoutError):
    """An environment exceeded ``step_timeout``, and its worker was killed."""


class RemoteError(Exception):
    """Replacement for a worker's exception that cannot be pickled.

    The exception raised is an instance of a class with the name of the original class, derived from
    this class and from the built-in exception that the original was derived from.
    """


class FactoryPicklingError(TypeError):
    """A factory function cannot be pickled, and so cannot be sent to a worker process."""


class VectorFailedError(RuntimeError):
    """The vector cannot continue because one of its environments failed earlier."""


class MissingExtraError(gymnasium.error.DependencyNotInstalled, ImportError):
    """An optional dependency is not installed; the message says how to install it."""


class UnknownGameError(gymnasium.error.NameNotFound, ValueError, AssertionError):
    """The Atari game does not exist, or has no single-player mode."""


class InvalidSettingError(gymnasium.error.Error, ValueError):
    """A setting of an Atari vector is invalid. No environment was created."""


class ConfigError(ValueError):
    """A training config is invalid; the message names the invalid entry."""


class NotFiniteError(ValueError):
    """A number in training is not finite: it came from an environment, or from an update."""


class RunInUseError(RuntimeError):
    """Another process is using the training run."""


class CheckpointError(RuntimeError):
    """A checkpoint or an agent file cannot be written or read."""


class ProtocolError(ConnectionError, ValueError):
    """The peer of a connection sent a message that violates the protocol."""


class RefusedError(ConnectionError):
    """A server refused a session. The message explains why; ``reason`` is a short identifier."""

    reason = ""


class AuthenticationError(RefusedError, PermissionError):
    """A server refused a session because the token is wrong."""


class LeaseError(RefusedError):
    """A device is owned by another client, or was given to another client in the meantime."""


class ConnectionLostError(ConnectionError):
    """The connection was lost. Whether the steps in flight were executed is unknown."""


class SessionLostError(ConnectionLostError):
    """The server no longer knows the session; its environments are closed."""
