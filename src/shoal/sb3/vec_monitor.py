"""A wrapper that records return, length and duration of each episode."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import vec_monitor as original

from shoal._wrapper_core.episodes import EpisodeTotals
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecMonitor"]


@counterpart_of(original.VecMonitor)
class VecMonitor(VecEnvWrapper):
    """Reports return, length and time of each episode in its last info, under ``episode``.

    Args:
        venv: The vector to wrap.
        filename: The log file, in the format of Stable-Baselines3's ``Monitor``; None for no file.
        info_keywords: Keys of the last info to report and log as well.
    """

    def __init__(
        self,
        venv: VecEnv,
        filename: str | None = None,
        info_keywords: tuple[str, ...] = (),
    ) -> None:
        if _has_monitors(venv):
            warnings.warn(
                "The environment is already wrapped with a `Monitor` wrapper but you are wrapping "
                "it with a `VecMonitor` wrapper, the `Monitor` statistics will be overwritten by "
                "the `VecMonitor` ones.",
                UserWarning,
                stacklevel=2,
            )
        super().__init__(venv)
        self.episode_count = 0
        self.t_start = time.time()
        self.info_keywords = info_keywords
        self.results_writer: ResultsWriter | None = None
        if filename:
            spec = getattr(venv, "spec", None)
            header: dict[str, float | str] = {
                "t_start": self.t_start,
                "env_id": str(spec and spec.id),
            }
            self.results_writer = ResultsWriter(filename, header, extra_keys=info_keywords)
        self._totals = EpisodeTotals(self.num_envs, np.float32, np.int32)

    @property
    def episode_returns(self) -> npt.NDArray[np.float32]:
        """The return so far of each environment's current episode."""
        return self._totals.returns

    @episode_returns.setter
    def episode_returns(self, returns: npt.NDArray[np.float32]) -> None:
        self._totals.returns[:] = returns

    @property
    def episode_lengths(self) -> npt.NDArray[np.int32]:
        """The length so far of each environment's current episode."""
        return self._totals.lengths

    @episode_lengths.setter
    def episode_lengths(self, lengths: npt.NDArray[np.int32]) -> None:
        self._totals.lengths[:] = lengths

    def reset(self) -> VecEnvObs:
        """Reset the environments and the statistics."""
        observations = self.venv.reset()
        self._totals.clear()
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and report the episodes that ended in it."""
        observations, rewards, dones, infos = self.venv.step_wait()
        self._totals.add(rewards)
        infos = list(infos)
        for slot in np.flatnonzero(dones).tolist():
            infos[slot] = {**infos[slot], "episode": self._episode(slot, infos[slot])}
        return observations, rewards, dones, infos

    def _episode(self, slot: int, info: dict[str, Any]) -> dict[str, Any]:
        episode = {
            "r": self._totals.returns[slot],
            "l": self._totals.lengths[slot],
            "t": round(time.time() - self.t_start, 6),
        }
        for key in self.info_keywords:
            if key not in info:
                raise KeyError(
                    f"{key!r} is not in the last info of environment {slot}, which has {list(info)}"
                )
            episode[key] = info[key]
        self.episode_count += 1
        self._totals.clear(slot)
        if self.results_writer:
            self.results_writer.write_row(episode)
        return episode

    def close(self) -> None:
        """Close the file, and every environment."""
        if self.results_writer:
            self.results_writer.close()
        self.venv.close()


def _has_monitors(venv: VecEnv) -> bool:
    try:
        return venv.env_is_wrapped(Monitor)[0]
    except AttributeError:  # a vector without single environments
        return False
