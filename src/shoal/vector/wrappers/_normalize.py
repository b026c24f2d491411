"""Observations and rewards, scaled by their running statistics."""

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
from shoal.vector.wrappers._episodes import EpisodeBounds
from shoal.vector.wrappers._final_observations import Finals
from shoal.vector.wrappers._state import SavesState

__all__ = ["NormalizeObservation", "NormalizeReward"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]


class NormalizeObservation(SavesState, VectorObservationWrapper):
    """Scales each element of the observations to mean 0 and variance 1.

    The statistics, ``obs_rms``, are those of all observations that were returned: of every slot
    in a step, and of the slots that were reset in a reset. Final observations in the infos are
    scaled by them.

    Args:
        env: The vector to wrap, whose observations are arrays or numbers.
        epsilon: Added to the variance, against a division by zero.

    Example:
        >>> import shoal
        >>> envs = NormalizeObservation(shoal.make("CartPole-v1", num_envs=4, backend="inline"))
        >>> for _ in range(3):
        ...     observations, _ = envs.reset(seed=0)
        >>> abs(observations.mean(axis=0)).max() < 0.01
        np.True_
        >>> envs.update_running_mean = False  # from now on, for evaluation
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
                "NormalizeObservation takes observations that are arrays or numbers, not those of "
                f"{self.single_observation_space}: flatten or filter them first"
            )
        self.single_observation_space = Box(-np.inf, np.inf, shape, np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.obs_rms = RunningMeanStd(shape=shape, dtype=np.float32)
        self.epsilon = epsilon
        self.update_running_mean = True
        """Whether the statistics take in what is observed."""

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and scale the observations of all slots."""
        slots, observations, infos = self._reset_slots(seed, options)
        if self.update_running_mean:
            self.obs_rms.update(observations[slots])
        return self._normalized(observations), infos

    def observations(self, observations: Any) -> npt.NDArray[np.float32]:
        """Take the observations of all slots into the statistics, and scale them."""
        if self.update_running_mean:
            self.obs_rms.update(observations)
        return self._normalized(observations)

    def final_observations(self, finals: Finals, observations: Any) -> Finals:  # noqa: ARG002
        """The final observations, scaled."""
        return {slot: self._normalized(np.asarray(final)) for slot, final in finals.items()}

    def _normalized(self, observations: Any) -> npt.NDArray[np.float32]:
        return self.obs_rms.normalized(observations, self.epsilon)

    def _state(self) -> State:
        return _as_state(self.obs_rms)

    def _restore(self, state: State) -> None:
        _restore(self.obs_rms, state)


class NormalizeReward(SavesState, VectorWrapper):
    """Divides rewards by the standard deviation of the discounted return.

    Args:
        env: The vector to wrap.
        gamma: The discount.
        epsilon: Added to the variance, against a division by zero.

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
        """Whether the statistics take in what is rewarded."""
        self._episodes = EpisodeBounds(env)

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector; the returns of the slots that were reset begin anew."""
        slots, observations, infos = self._reset_slots(seed, options)
        self.accumulated_reward[slots] = 0
        self._episodes.begin(slots)
        return observations, infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and scale its rewards."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        passed = self._episodes.step(terminated, truncated, infos)
        active: SlotIndex = ~passed.reset if passed.reset.any() else slice(None)
        self.accumulated_reward[active] = (
            self.accumulated_reward[active] * self.gamma * (1 - terminated[active])
            + rewards[active]
        )
        if self.update_running_mean:
            self.return_rms.update(self.accumulated_reward[active])
        self.accumulated_reward[passed.restarted] = 0
        return observations, self._normalized(rewards), terminated, truncated, infos

    def normalize(self, reward: Any) -> Any:
        """Take the returns of all slots into the statistics once more, and scale a reward."""
        if self.update_running_mean:
            self.return_rms.update(self.accumulated_reward)
        return self._normalized(reward)

    def _normalized(self, rewards: Any) -> Any:
        return rewards / np.sqrt(self.return_rms.var + self.epsilon)

    def _state(self) -> State:
        return {
            **_as_state(self.return_rms),
            "num_envs": np.array(self.num_envs),
            "accumulated_reward": self.accumulated_reward,
            "over": self._episodes.over,
        }

    def _restore(self, state: State) -> None:
        _restore(self.return_rms, state)
        self.accumulated_reward[:] = state["accumulated_reward"]
        self._episodes.over[:] = state["over"]


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
