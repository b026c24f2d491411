"""Training on any Shoal vector, episode after episode in each slot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal._types import CRASHED, ColumnInfos, RawInfos
from shoal.errors import NotFiniteError
from shoal.pools import Batch
from shoal.train._agents import AgentSpaces
from shoal.train._config.schema import Phase
from shoal.train._curriculum import Progress
from shoal.train._tasks.flattening import make_flatten
from shoal.train._tasks.sources import EnvSource, open_vector
from shoal.vector._kernel_vector_env import KernelVectorEnv

__all__ = ["FinishedEpisode", "Outcome", "VectorTask"]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Outcome(NamedTuple):
    """Result of a step of all slots."""

    rewards: npt.NDArray[np.float64]
    """Rewards for the agent, after shaping and scaling."""
    next_observations: npt.NDArray[np.float32]
    """Next observations; final observations where an episode has ended."""
    terminated: Mask
    truncated: Mask


class FinishedEpisode(NamedTuple):
    """A finished episode."""

    slot: int
    length: int
    reward: float
    shaped_reward: float
    opponent: str
    winner: int | None
    is_match: bool
    """Whether it was a regular game of hockey (mode ``NORMAL``), which counts for ratings."""


class VectorTask:
    """A vector without autoreset, whose finished slots are reset by the training loop.

    Args:
        env: The environment.
        num_envs: Number of slots.
        arguments: Keyword arguments for :func:`shoal.make` or :func:`shoal.connect`.
        seed: The seed of the environments.
        max_episode_steps: Episodes are truncated after this number of steps.
        reward_scale: Factor by which the agent's rewards are multiplied.
    """

    def __init__(
        self,
        env: EnvSource,
        num_envs: int,
        *,
        arguments: Mapping[str, Any] | None = None,
        seed: int = 0,
        max_episode_steps: int | None = None,
        reward_scale: float = 1.0,
    ) -> None:
        self.envs = open_vector(env, num_envs, autoreset_mode="Disabled", **dict(arguments or {}))
        self.num_envs = num_envs
        self._seed = seed
        self._limit = max_episode_steps
        self._scale = reward_scale
        self._has_reset = False
        self._lengths = np.zeros(num_envs, np.int64)
        self._returns = np.zeros(num_envs)
        self._shaped = np.zeros(num_envs)
        try:
            self.spaces = self._spaces()
        except BaseException:
            self.close()
            raise
        self.observations = np.zeros((num_envs, self.spaces.observation_size), np.float32)

    def _spaces(self) -> AgentSpaces:
        size, self._flatten = make_flatten(self.envs.single_observation_space)
        return AgentSpaces(size, self.envs.single_action_space)

    @property
    def can_be_saved(self) -> bool:
        """Whether episodes can be saved and resumed."""
        return isinstance(self.envs, KernelVectorEnv)

    def begin(self, phase: Phase, progress: Progress) -> None:
        """Start a phase. Subclasses apply its rules to episodes that start from now on."""

    def reset(self, slots: Array | None = None) -> None:
        """Start episodes in the given slots, or in all slots."""
        chosen = np.arange(self.num_envs) if slots is None else slots
        if not len(chosen):
            return
        # Only the first episode of a slot is seeded.
        seeds = None if self._has_reset else [self._seed + int(slot) for slot in chosen]
        pool = self.envs.pool
        pool.reset(chosen, seeds)
        for totals in (self._lengths, self._returns, self._shaped):
            totals[chosen] = 0
        self._set_first_observations(chosen, pool.recv())
        self._check_finite("observation", self.observations)
        self._has_reset = True

    def _set_first_observations(self, chosen: Array, batch: Batch) -> None:
        self.observations[chosen] = self._flatten(batch.observations)

    def step(self, actions: Array) -> Outcome:
        """Step all slots, with actions in the format of the environment's action space.

        Slots whose episodes have ended must be reset before the next step.
        """
        batch, rewards, terminated, truncated, infos = self.envs.pool.step(actions)
        observations = self._flatten(batch)
        crashed = _crashed(infos)
        if crashed:
            # The batch has the first observations of the replacement environments. The final
            # observations of the crashed ones are unknown: use their last known observations.
            observations = np.array(observations)
            observations[crashed] = self.observations[crashed]
        return self._outcome(rewards, rewards, observations, terminated, truncated)

    def _outcome(
        self, rewards: Array, shaped: Array, observations: Array, terminated: Mask, truncated: Mask
    ) -> Outcome:
        self._lengths += 1
        self._check_finite("reward", shaped)
        self._check_finite("observation", observations)
        scaled = shaped * self._scale
        self._returns += rewards
        self._shaped += scaled
        if self._limit is not None:
            truncated = truncated | (~terminated & (self._lengths >= self._limit))
        # Copy: the next step may write to the same memory.
        self.observations = np.array(observations, np.float32)
        return Outcome(scaled, observations, terminated, truncated)

    def _check_finite(self, name: str, values: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # faster than checking each number
                return
        invalid = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(1))
        if len(invalid):
            slot = int(invalid[0])
            raise NotFiniteError(
                f"the {name} of slot {slot} after step {self._lengths[slot]} of its episode is "
                f"{values[slot]}: training needs finite numbers"
            )

    def finished_episodes(self, slots: Array) -> list[FinishedEpisode]:
        """Return the episodes that have just ended in these slots."""
        return [
            FinishedEpisode(
                int(slot),
                int(self._lengths[slot]),
                float(self._returns[slot]),
                float(self._shaped[slot]),
                self._opponent_of(int(slot)),
                self._winner_of(int(slot)),
                self._is_match(int(slot)),
            )
            for slot in slots
        ]

    def _opponent_of(self, slot: int) -> str:  # noqa: ARG002
        return ""

    def _winner_of(self, slot: int) -> int | None:  # noqa: ARG002
        return None

    def _is_match(self, slot: int) -> bool:  # noqa: ARG002
        return False

    def state(self) -> dict[str, Any]:
        """Return the state of all slots, including that of the environments if they are kernels."""
        state = {
            "lengths": self._lengths,
            "returns": self._returns,
            "shaped": self._shaped,
            "observations": self.observations,
        }
        if isinstance(self.envs, KernelVectorEnv):
            state["slots"] = self.envs.save()
        return state

    def restore(self, state: dict[str, Any], step: int) -> None:
        """Restore the state returned by :meth:`state`, or start new episodes if it has no slots.

        Args:
            state: The state.
            step: The step of the run. New episodes are seeded by it, so that they differ from the
                first episodes of the run.
        """
        self._seed = int(np.random.SeedSequence([self._seed, step]).generate_state(1)[0] >> 1)
        VectorTask.reset(self)  # slots must be reset once before their state can be restored
        if "slots" not in state or not isinstance(self.envs, KernelVectorEnv):
            warnings.warn(
                "the state of Python environments is not saved: all slots start new episodes",
                stacklevel=2,
            )
            return
        self.envs.restore(state["slots"])
        self._lengths, self._returns = state["lengths"].copy(), state["returns"].copy()
        self._shaped, self.observations = state["shaped"].copy(), state["observations"].copy()

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()


def _crashed(infos: RawInfos | ColumnInfos | None) -> list[int]:
    """Return the slots whose environment crashed and was replaced."""
    if infos is None or isinstance(infos, ColumnInfos):  # kernels do not crash
        return []
    return [slot for slot, info in infos[0] if CRASHED in info]
