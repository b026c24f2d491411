"""Training on hockey: mode, opponent and reward shaping are chosen per episode and slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium import spaces

from shoal._envs.hockey.kernels import SEEN
from shoal._envs.hockey.values import CODECS
from shoal._types import ColumnInfos
from shoal.pools import Batch, KernelPool
from shoal.train._agents import AgentSpaces
from shoal.train._config.loading import HOCKEY
from shoal.train._config.schema import ModeName, Phase
from shoal.train._curriculum import Progress
from shoal.train._opponents import SELF, OpponentDraw, Opponents
from shoal.train._shaping import shaping_weights
from shoal.train._tasks.vector_task import Array, Outcome, VectorTask
from shoal.train._weighted_draw import WeightedDraw

__all__ = ["HockeyTask", "hockey_spaces"]

NUMBERS = 4
"""Number of components of a player's action."""

SCALE = [1, 1, 0.5, 4, 4, 4] * 2 + [2, 2, 10, 10, 4, 4]
"""Customary divisors for the components of an observation."""

CHOICES = np.zeros((8, NUMBERS), np.float32)
"""Discrete actions: no-op, x-, x+, y-, y+, turn-, turn+, shoot."""
for _axis in range(3):
    CHOICES[1 + 2 * _axis, _axis], CHOICES[2 + 2 * _axis, _axis] = -1.0, 1.0
CHOICES[7, 3] = 1.0

_MATCH = float(CODECS["mode"].read("NORMAL"))

_SHAPED = ("reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")


def hockey_spaces() -> AgentSpaces:
    """Return the spaces of one hockey player."""
    box = spaces.Box(-1.0, 1.0, (NUMBERS,), np.float32)
    return AgentSpaces(SEEN, box, observation_scale=SCALE, table=CHOICES, switches=(3,))


class HockeyTask(VectorTask):
    """Matches of the agent, as the first player, against opponents.

    Args:
        num_envs: Number of matches.
        seed: The seed of the environments.
        rng: The generator with which modes and opponents are drawn.
        opponents: The registry of opponents.
        from_league: Draws an opponent's name from the league.
        exploiters: Number of slots, the last ones, in which an exploiter plays against the agent.
        options: Keyword arguments of :class:`VectorTask`.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        seed: int,
        rng: np.random.Generator,
        opponents: Opponents,
        from_league: Callable[[np.random.Generator], str],
        exploiters: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(HOCKEY, num_envs, seed=seed, **options)
        self._rng = rng
        self.opponents = opponents
        self._from_league = from_league
        self._num_main_slots = num_envs - exploiters
        self._numbers = np.zeros(num_envs, np.int64)  # of the opponents
        self._weights = np.zeros((num_envs, len(_SHAPED)))
        self._winners = np.zeros(num_envs, np.int64)
        self._second_observations = np.zeros((num_envs, SEEN), np.float32)
        self._actions = np.zeros((num_envs, 2 * NUMBERS), np.float32)
        self._parameters = {
            name: np.full(num_envs, float(value))
            for name, value in self._pool.kernel.values.items()
        }

    @property
    def _pool(self) -> KernelPool:
        return cast(KernelPool, self.envs.pool)

    def _spaces(self) -> AgentSpaces:
        return hockey_spaces()

    @property
    def playing(self) -> Array:
        """Number of the opponent in each slot."""
        return self._numbers

    def begin(self, phase: Phase, progress: Progress) -> None:
        """Start a phase: its rules apply to episodes that start from now on."""
        environment = phase.environment
        mixture = environment.mixture
        if mixture is not None:
            modes: list[ModeName] = [part.mode for part in mixture]
            self._modes = WeightedDraw(modes, [part.weight for part in mixture])
        else:
            self._modes = WeightedDraw([environment.mode or "NORMAL"], [1.0])
        self._draw = OpponentDraw(phase.opponent, self._from_league)
        self._keep_mode = environment.keep_mode
        self._phase, self._progress = phase, progress

    def reset(self, slots: Array | None = None) -> None:
        """Start episodes, each with a newly drawn mode and opponent."""
        chosen = np.arange(self.num_envs) if slots is None else slots
        for slot in chosen.tolist():
            self._prepare(slot)
        super().reset(chosen)

    def _prepare(self, slot: int) -> None:
        mode = self._modes.draw(self._rng)
        if slot < self._num_main_slots:
            name, deterministic = self._draw.draw(self._rng)
            episode = self._progress.begin_episode()
        else:
            # An exploiter uses the shaping weights of the agent's newest episode.
            name, deterministic = SELF, False
            episode = max(0, self._progress.started - 1)
        number = self._numbers[slot] = self.opponents.number(name, deterministic)
        self._weights[slot] = shaping_weights(self._phase.reward_shaping, episode)
        self._set(slot, "mode", mode)
        self._set(slot, "opponent", self.opponents[number].scripted)
        self._set(slot, "keep_mode", self._keep_mode)

    def _set(self, slot: int, name: str, value: Any) -> None:
        number = float(CODECS[name].read(value))
        if self._parameters[name][slot] != number:
            self._parameters[name][slot] = number
            self._pool.set_parameter(slot, name, number)

    def _set_first_observations(self, chosen: Array, batch: Batch) -> None:
        self.observations[chosen] = batch.observations[:, 0]
        self._second_observations[chosen] = batch.observations[:, 1]

    def step(self, actions: Array) -> Outcome:
        """Step all matches, with the agent's actions in the format of the action space."""
        both = self._actions
        both[:, :NUMBERS] = actions
        self.opponents.act(self._numbers, self._second_observations, both[:, NUMBERS:])
        observations, rewards, terminated, truncated, infos = self._pool.step(both)
        columns = cast(ColumnInfos, infos).columns
        self._winners = columns["winner"][:, 0]
        shaped = rewards
        if self._weights.any():
            terms = np.stack([columns[name][:, 0] for name in _SHAPED], axis=1)
            shaped = rewards + (terms * self._weights).sum(1)
        self._second_observations = np.array(observations[:, 1], np.float32)
        first = np.ascontiguousarray(observations[:, 0])
        return self._outcome(rewards, shaped, first, terminated, truncated)

    def _opponent_of(self, slot: int) -> str:
        return self.opponents[int(self._numbers[slot])].name

    def _winner_of(self, slot: int) -> int | None:
        return int(self._winners[slot])

    def _is_match(self, slot: int) -> bool:
        return bool(self._parameters["mode"][slot] == _MATCH)

    def state(self) -> dict[str, Any]:
        """Return the state of all matches and opponents."""
        return super().state() | {
            "opponents": self.opponents.state(),
            "numbers": self._numbers,
            "weights": self._weights,
            "second_observations": self._second_observations,
            "parameters": dict(self._parameters),
        }

    def restore(self, state: dict[str, Any], step: int) -> None:
        """Restore the state returned by :meth:`state`."""
        self.opponents.restore(state["opponents"])
        self._numbers = state["numbers"].copy()
        self._weights = state["weights"].copy()
        for name, values in state["parameters"].items():
            self._parameters[name] = values.copy()
            for slot, value in enumerate(values.tolist()):
                self._pool.set_parameter(slot, name, value)
        super().restore(state, step)
        self._second_observations = state["second_observations"].copy()
