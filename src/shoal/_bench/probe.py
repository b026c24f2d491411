"""What an environment is like: found out in a process of its own, before anybody is measured."""

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
    """What was seen of an environment. Times are in seconds."""

    making: float
    reset: float
    step: float
    busy: float
    """Of a step, how much it kept the processor busy."""
    infos: float
    """To send the infos of a step from one process to another."""
    observation_bytes: int
    has_kernel: bool
    is_kernel: bool
    """Whether it is nothing but one."""
    has_own_vector: bool
    """Whether it is registered with a vector of its own, as ``gymnasium.make_vec`` makes it."""
    is_atari: bool
    reward: str
    """The type of its rewards."""
    reward_is_number: bool
    render_mode: str | None

    @property
    def waits(self) -> bool:
        """Whether most of a step is spent waiting, so that many may wait at once."""
        return self.busy < 0.5 * self.step

    def warnings(self) -> list[str]:
        """Say what of it makes every vector slower, or breaks some."""
        found = []
        if self.render_mode == "human":
            found.append("It opens a window (render_mode='human') and draws in every step.")
        if not self.reward_is_number:
            found.append(f"Its rewards are no numbers but {self.reward}, which vectors may refuse.")
        if self.infos > self.step:
            found.append(
                f"Its infos take {self.infos * 1e6:.0f} us to be sent between processes, longer "
                "than a step."
            )
        if self.observation_bytes > _LARGE_BYTES:
            found.append(
                f"Its observations are large ({self.observation_bytes / 1e6:.1f} MB): views "
                "(copy=False) save a copy of each batch."
            )
        return found


def probe_env(
    workload: Workload, load: LoadEnv, arguments: dict[str, Any], timeout: float
) -> EnvProfile:
    """Make the environment, reset it and step it for a moment.

    Raises:
        ValueError: It cannot be made, reset or stepped; the message says why, in one line, and the
            cause where.
    """
    looking = partial(_Looking, workload, load, arguments)
    try:
        process = ServiceProcess(looking, current_interpreter(), timeout)
        try:
            seen = process.request("look")
        finally:
            process.kill()
    except ContenderError as error:
        raise ValueError(f"{workload.name} cannot be looked at: {error}") from None
    if "failure" in seen:
        raise ValueError(f"{workload.name} {seen['failure']}") from RemoteTraceback(seen["where"])
    return EnvProfile(**seen)


class _Looking:
    def __init__(self, workload: Workload, load: LoadEnv, arguments: dict[str, Any]) -> None:
        self._workload = workload
        self._load = load
        self._arguments = arguments
        self.requests: dict[str, Callable[..., Any]] = {"look": self.look}

    def look(self) -> dict[str, Any]:
        """What was seen, or in words what cannot be done, and where it was tried."""
        try:
            return asdict(self._seen())
        except _LookingError as failure:
            tried = traceback.format_exception(failure.__cause__)
            return {"failure": str(failure), "where": "".join(tried)}

    def close(self) -> None:
        """Nothing is open."""

    def _seen(self) -> EnvProfile:
        begun = time.perf_counter()
        with _doing("be made"):
            env = self._workload.make()
        made = time.perf_counter()
        with _doing("be reset"):
            env.reset(seed=0)
        reset = time.perf_counter()
        with _doing("be stepped"):
            _, reward, _, _, _ = env.step(env.action_space.sample())
            render_mode = env.render_mode
            env.close()
            measured = measure(self._workload.make)
        what = self._load()
        is_number = isinstance(reward, Real)
        return EnvProfile(
            making=made - begun,
            reset=reset - made,
            step=measured.step,
            busy=measured.busy,
            infos=measured.infos,
            observation_bytes=measured.nbytes,
            has_kernel=has_kernel(what, self._arguments),
            is_kernel=isinstance(what, Kernel),
            has_own_vector=isinstance(what, str) and _has_own_vector(what),
            is_atari=is_atari(what),
            reward=type(reward).__name__,
            reward_is_number=is_number,
            render_mode=render_mode,
        )


class _LookingError(Exception):
    """What cannot be done with an environment, and why."""


@contextmanager
def _doing(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise _LookingError(f"cannot {what}: {reason}") from error


def _has_own_vector(env_id: str) -> bool:
    return gymnasium.spec(env_id).vector_entry_point is not None
