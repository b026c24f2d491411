"""What an agent is trained on: any vector of Shoal's, episode after episode in each slot."""

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
from shoal.train._tasks.flattening import flattening
from shoal.train._tasks.sources import EnvSource, open_vector
from shoal.vector._kernel_vector_env import KernelVectorEnv

__all__ = ["Ended", "Outcome", "VectorTask"]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Outcome(NamedTuple):
    """What came of a step of all slots."""

    rewards: npt.NDArray[np.float64]
    """As the agent is given them."""
    next_observations: npt.NDArray[np.float32]
    """Where an episode has ended, its last one."""
    terminated: Mask
    truncated: Mask


class Ended(NamedTuple):
    """An episode that has ended."""

    slot: int
    length: int
    reward: float
    shaped_reward: float
    opponent: str
    winner: int | None
    is_match: bool
    """Whether it was hockey by its rules, by which players are rated."""


class VectorTask:
    """A vector, of which each slot is reset when its episode has ended.

    Args:
        env: What is trained on.
        num_envs: How many slots.
        arguments: Given to :func:`shoal.make`, or :func:`shoal.connect`.
        seed: Of the environments.
        max_episode_steps: Where episodes are truncated, if they have not ended before.
        reward_scale: What the agent's rewards are multiplied by.
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
        self._begun = False
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
        size, self._flatten = flattening(self.envs.single_observation_space)
        return AgentSpaces(size, self.envs.single_action_space)

    @property
    def can_be_saved(self) -> bool:
        """Whether a run can be resumed in the middle of episodes."""
        return isinstance(self.envs, KernelVectorEnv)

    def begin(self, phase: Phase, progress: Progress) -> None:
        """Episodes that begin from now on are those of this phase, which all are alike here."""

    def reset(self, slots: Array | None = None) -> None:
        """Begin episodes, in all slots or in these."""
        chosen = np.arange(self.num_envs) if slots is None else slots
        if not len(chosen):
            return
        seeds = None if self._begun else [self._seed + int(slot) for slot in chosen]
        pool = self.envs.pool
        pool.reset(chosen, seeds)
        for totals in (self._lengths, self._returns, self._shaped):
            totals[chosen] = 0
        self._first_seen(chosen, pool.recv())
        self._check_finite("observation", self.observations)
        self._begun = True

    def _first_seen(self, chosen: Array, batch: Batch) -> None:
        self.observations[chosen] = self._flatten(batch.observations)

    def step(self, actions: Array) -> Outcome:
        """Step all slots, with actions as the environments take them.

        Slots whose episodes have ended must be reset before the next step.
        """
        seen, rewards, terminated, truncated, infos = self.envs.pool.step(actions)
        found = self._flatten(seen)
        lost = _crashed(infos)
        if lost:
            # What they see is of a new environment; the last that was seen of the old one is this.
            found = np.array(found)
            found[lost] = self.observations[lost]
        return self._outcome(rewards, rewards, found, terminated, truncated)

    def _outcome(
        self, rewards: Array, shaped: Array, seen: Array, terminated: Mask, truncated: Mask
    ) -> Outcome:
        self._lengths += 1
        self._check_finite("reward", shaped)
        self._check_finite("observation", seen)
        given = shaped * self._scale
        self._returns += rewards
        self._shaped += given
        if self._limit is not None:
            truncated = truncated | (~terminated & (self._lengths >= self._limit))
        # Memory that the next step may write to is not what is remembered.
        self.observations = np.array(seen, np.float32)
        return Outcome(given, seen, terminated, truncated)

    def _check_finite(self, what: str, values: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # which is quicker than a look at each number
                return
        wrong = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(1))
        if len(wrong):
            slot = int(wrong[0])
            raise NotFiniteError(
                f"the {what} of slot {slot} after step {self._lengths[slot]} of its episode is "
                f"{values[slot]}: nothing can be learnt from what is not finite"
            )

    def ended(self, slots: Array) -> list[Ended]:
        """What is to be told of the episodes that have just ended in these slots."""
        return [
            Ended(
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
        """Where all slots are. Only kernels can be saved in the middle of an episode."""
        found = {
            "lengths": self._lengths,
            "returns": self._returns,
            "shaped": self._shaped,
            "observations": self.observations,
        }
        if isinstance(self.envs, KernelVectorEnv):
            found["slots"] = self.envs.save()
        return found

    def restore(self, state: dict[str, Any], step: int) -> None:
        """Go on where :meth:`state` was taken; new episodes where that cannot be.

        Args:
            state: Where that is.
            step: Of the run. New episodes are those that follow from it, not the run's first.
        """
        self._seed = int(np.random.SeedSequence([self._seed, step]).generate_state(1)[0] >> 1)
        VectorTask.reset(self)  # every slot must have had one; what it was does not matter
        if "slots" not in state or not isinstance(self.envs, KernelVectorEnv):
            warnings.warn(
                "Python environments are not saved: all slots begin new episodes",
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
    """The slots that have lost their environment, and come back with another one."""
    if infos is None or isinstance(infos, ColumnInfos):  # kernels do not
        return []
    return [slot for slot, info in infos[0] if CRASHED in info]
