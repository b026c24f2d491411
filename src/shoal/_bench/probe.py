"""Examine an environment in a separate process, before the contenders are measured."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Real
from typing import Any

import gymnasium

from shoal._bench.env_workload import LoadEnv, has_kernel
from shoal._bench.process import ContenderError, ServiceProcess, current_interpreter
from shoal._bench.workload import Workload
from shoal._envs.atari.registered_ids import is_atari
from shoal._error_description import RemoteTraceback
from shoal._plan import measure
from shoal.kernels import Kernel

__all__ = ["EnvProfile", "probe_env"]

_LARGE_BYTES = 100_000


@dataclass(frozen=True)
class EnvProfile:
    """Properties of an environment. Times are in seconds."""

    making: float
    reset: float
    step: float
    busy: float
    """CPU time of a step."""
    infos: float
    """Time to send the infos of a step to another process."""
    observation_bytes: int
    has_kernel: bool
    is_kernel: bool
    """Whether the environment is a kernel, without a Python class."""
    has_own_vector: bool
    """Whether it is registered with its own vector, which ``gymnasium.make_vec`` creates."""
    is_atari: bool
    reward: str
    """The type of the reward."""
    reward_is_number: bool
    render_mode: str | None

    @property
    def waits(self) -> bool:
        """Whether most of a step is spent waiting, so that many workers can wait in parallel."""
        return self.busy < 0.5 * self.step

    def warnings(self) -> list[str]:
        """Return warnings, as sentences, about properties that vectors handle badly."""
        warnings = []
        if self.render_mode == "human":
            warnings.append(
                "The environment opens a window (render_mode='human') and renders every step."
            )
        if not self.reward_is_number:
            warnings.append(
                f"The rewards are of type {self.reward}, not numbers: some vectors reject them."
            )
        if self.infos > self.step:
            warnings.append(
                f"Sending the infos between processes takes {self.infos * 1e6:.0f} us, longer than "
                "a step."
            )
        if self.observation_bytes > _LARGE_BYTES:
            warnings.append(
                f"The observations are large ({self.observation_bytes / 1e6:.1f} MB): copy=False "
                "saves a copy of each batch."
            )
        return warnings


def probe_env(
    workload: Workload, load: LoadEnv, arguments: dict[str, Any], timeout: float
) -> EnvProfile:
    """Create the environment, reset it, and step it briefly.

    Raises:
        ValueError: It cannot be created, reset or stepped. The message is one line; the cause has
            the traceback.
    """
    probe = partial(_Probe, workload, load, arguments)
    try:
        process = ServiceProcess(probe, current_interpreter(), timeout)
        try:
            answer = process.request("probe")
        finally:
            process.kill()
    except ContenderError as error:
        raise ValueError(f"{workload.name} cannot be examined: {error}") from None
    if "failure" in answer:
        cause = RemoteTraceback(answer["traceback"])
        raise ValueError(f"{workload.name} {answer['failure']}") from cause
    return EnvProfile(**answer)


class _Probe:
    def __init__(self, workload: Workload, load: LoadEnv, arguments: dict[str, Any]) -> None:
        self._workload = workload
        self._load = load
        self._arguments = arguments
        self.requests: dict[str, Callable[..., Any]] = {"probe": self.probe}

    def probe(self) -> dict[str, Any]:
        """Return the profile's fields, or a description of the failure and its traceback."""
        try:
            return asdict(self._profile())
        except _ProbeError as failure:
            lines = traceback.format_exception(failure.__cause__)
            return {"failure": str(failure), "traceback": "".join(lines)}

    def close(self) -> None:
        """Do nothing: the environment is closed already."""

    def _profile(self) -> EnvProfile:
        start = time.perf_counter()
        with _attempt("created"):
            env = self._workload.make()
        made = time.perf_counter()
        with _attempt("reset"):
            env.reset(seed=0)
        reset = time.perf_counter()
        with _attempt("stepped"):
            _, reward, _, _, _ = env.step(env.action_space.sample())
            render_mode = env.render_mode
            env.close()
            measured = measure(self._workload.make)
        source = self._load()
        is_number = isinstance(reward, Real)
        return EnvProfile(
            making=made - start,
            reset=reset - made,
            step=measured.step,
            busy=measured.busy,
            infos=measured.infos,
            observation_bytes=measured.nbytes,
            has_kernel=has_kernel(source, self._arguments),
            is_kernel=isinstance(source, Kernel),
            has_own_vector=isinstance(source, str) and _has_own_vector(source),
            is_atari=is_atari(source),
            reward=type(reward).__name__,
            reward_is_number=is_number,
            render_mode=render_mode,
        )


class _ProbeError(Exception):
    """An operation that failed, and the reason."""


@contextmanager
def _attempt(participle: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise _ProbeError(f"cannot be {participle}: {reason}") from error


def _has_own_vector(env_id: str) -> bool:
    return gymnasium.spec(env_id).vector_entry_point is not None
