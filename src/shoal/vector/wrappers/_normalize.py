"""Wrappers that normalise observations and rewards by running statistics."""

from __future__ import annotations

from typing import Any

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium.error import InvalidBound
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from shoal._wrapper_core.moments import RunningMeanStd
from shoal._wrapper_core.state_files import State
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import SlotIndex, Step, VectorObservationWrapper, VectorWrapper
from shoal.vector.wrappers._episodes import EpisodeTracker
from shoal.vector.wrappers._final_observations import Finals
from shoal.vector.wrappers._state import SavesState

__all__ = ["NormalizeObservation", "NormalizeReward"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]


class NormalizeObservation(SavesState, VectorObservationWrapper):
    """Scales each element of the observations to mean 0 and variance 1.

    The statistics ``obs_rms`` include the observations of every slot in a step, and those of the
    slots that were reset in a reset. Final observations in the infos are scaled, but not included.

    Args:
        env: The vector to wrap, whose observations are arrays or numbers.
        epsilon: Added to the variance to avoid a division by zero.

    Example:
        >>> import shoal
        >>> envs = NormalizeObservation(shoal.make("CartPole-v1", num_envs=4, backend="inline"))
        >>> for _ in range(3):
        ...     observations, _ = envs.reset(seed=0)
        >>> abs(observations.mean(axis=0)).max() < 0.01
        np.True_
        >>> envs.update_running_mean = False  # for evaluation
        >>> envs.close()
    """

    _kind = "shoal.vector.wrappers.NormalizeObservation"
    _any_precision = frozenset({"mean", "var"})

    def __init__(self, env: Vector, epsilon: float = 1e-8) -> None:
        _check_epsilon(epsilon)
        super().__init__(env)
        shape = self.single_observation_space.shape
        if shape is None:
            raise TypeError(
                "NormalizeObservation supports observations that are arrays or numbers, not those "
                f"of {self.single_observation_space}: flatten or filter them first"
            )
        self.single_observation_space = Box(-np.inf, np.inf, shape, np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.obs_rms = RunningMeanStd(shape=shape, dtype=np.float32)
        self.epsilon = epsilon
        self.update_running_mean = True
        """Whether observations update the statistics."""

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and scale the observations of all slots."""
        slots, observations, infos = self._reset_slots(seed, options)
        if self.update_running_mean:
            self.obs_rms.update(observations[slots])
        return self._normalize(observations), infos

    def observations(self, observations: Any) -> npt.NDArray[np.float32]:
        """Update the statistics with the observations of all slots, and scale these."""
        if self.update_running_mean:
            self.obs_rms.update(observations)
        return self._normalize(observations)

    def final_observations(self, finals: Finals, observations: Any) -> Finals:  # noqa: ARG002
        """Scale final observations, without updating the statistics."""
        return {slot: self._normalize(np.asarray(final)) for slot, final in finals.items()}

    def _normalize(self, observations: Any) -> npt.NDArray[np.float32]:
        return self.obs_rms.normalize(observations, self.epsilon)

    def _state(self) -> State:
        return _as_state(self.obs_rms)

    def _restore(self, state: State) -> None:
        _restore(self.obs_rms, state)


class NormalizeReward(SavesState, VectorWrapper):
    """Divides rewards by the standard deviation of the discounted return.

    Args:
        env: The vector to wrap.
        gamma: The discount factor.
        epsilon: Added to the variance to avoid a division by zero.

    Example:
        >>> import shoal
        >>> with NormalizeReward(shoal.make("Pendulum-v1", num_envs=4, backend="inline")) as envs:
        ...     _ = envs.reset(seed=0)
        ...     for _ in range(50):
        ...         rewards = envs.step(np.zeros((4, 1), np.float32))[1]
        ...     bool((abs(rewards) < 1).all())
        True
    """

    _kind = "shoal.vector.wrappers.NormalizeReward"

    def __init__(self, env: Vector, gamma: float = 0.99, epsilon: float = 1e-8) -> None:
        if not 0 <= gamma <= 1:
            raise InvalidBound(f"`gamma` should be in the interval [0, 1]. Received {gamma}")
        _check_epsilon(epsilon)
        super().__init__(env)
        self.return_rms = RunningMeanStd(shape=())
        self.accumulated_reward = np.zeros(self.num_envs, np.float32)
        self.gamma = gamma
        self.epsilon = epsilon
        self.update_running_mean = True
        """Whether rewards update the statistics."""
        self._episodes = EpisodeTracker(env)

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and the returns of the slots that were reset."""
        slots, observations, infos = self._reset_slots(seed, options)
        self.accumulated_reward[slots] = 0
        self._episodes.start(slots)
        return observations, infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and scale its rewards."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        transitions = self._episodes.step(terminated, truncated, infos)
        active: SlotIndex = ~transitions.reset if transitions.reset.any() else slice(None)
        self.accumulated_reward[active] = (
            self.accumulated_reward[active] * self.gamma * (1 - terminated[active])
            + rewards[active]
        )
        if self.update_running_mean:
            self.return_rms.update(self.accumulated_reward[active])
        self.accumulated_reward[transitions.restarted] = 0
        return observations, self._normalize(rewards), terminated, truncated, infos

    def normalize(self, reward: Any) -> Any:
        """Update the statistics with the returns of all slots once more, and scale a reward."""
        if self.update_running_mean:
            self.return_rms.update(self.accumulated_reward)
        return self._normalize(reward)

    def _normalize(self, rewards: Any) -> Any:
        return rewards / np.sqrt(self.return_rms.var + self.epsilon)

    def _state(self) -> State:
        return {
            **_as_state(self.return_rms),
            "num_envs": np.array(self.num_envs),
            "accumulated_reward": self.accumulated_reward,
            "over": self._episodes.finished,
        }

    def _restore(self, state: State) -> None:
        _restore(self.return_rms, state)
        self.accumulated_reward[:] = state["accumulated_reward"]
        self._episodes.finished[:] = state["over"]


def _check_epsilon(epsilon: float) -> None:
    if epsilon <= 0:
        raise InvalidBound(f"`epsilon` should be strictly positive. Received {epsilon}")


def _as_state(statistics: RunningMeanStd) -> State:
    return {
        "mean": np.asarray(statistics.mean),
        "var": np.asarray(statistics.var),
        "count": np.array(float(statistics.count)),
    }


def _restore(statistics: RunningMeanStd, state: State) -> None:
    statistics.mean, statistics.var = state["mean"], state["var"]
    statistics.count = float(state["count"])
