"""Hockey as a task: modes, opponents and shaped rewards, drawn for each episode of each slot."""

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
"""How many numbers an action of one player has."""

SCALE = [1, 1, 0.5, 4, 4, 4] * 2 + [2, 2, 10, 10, 4, 4]
"""What observations are customarily divided by."""

CHOICES = np.zeros((8, NUMBERS), np.float32)
"""Nothing, x-, x+, y-, y+, turn-, turn+, shoot."""
for _axis in range(3):
    CHOICES[1 + 2 * _axis, _axis], CHOICES[2 + 2 * _axis, _axis] = -1.0, 1.0
CHOICES[7, 3] = 1.0

_MATCH = float(CODECS["mode"].read("NORMAL"))

_SHAPED = ("reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")


def hockey_spaces() -> AgentSpaces:
    """What a player of hockey sees and does."""
    box = spaces.Box(-1.0, 1.0, (NUMBERS,), np.float32)
    return AgentSpaces(SEEN, box, observation_scale=SCALE, table=CHOICES, switches=(3,))


class HockeyTask(VectorTask):
    """Matches of the agent, which is the first player, against opponents.

    Args:
        num_envs: How many matches.
        seed: Of the environments.
        rng: What modes and opponents are drawn with.
        opponents: Who there is.
        from_league: Draws an opponent's name from the league.
        exploiters: So many of the last slots are played by an exploiter, against the agent itself.
        options: As those of :class:`VectorTask`.
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
        self._mains = num_envs - exploiters
        self._numbers = np.zeros(num_envs, np.int64)  # of the opponents
        self._weights = np.zeros((num_envs, len(_SHAPED)))
        self._winners = np.zeros(num_envs, np.int64)
        self._seen_by_second = np.zeros((num_envs, SEEN), np.float32)
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
        """The numbers of the opponents in all slots."""
        return self._numbers

    def begin(self, phase: Phase, progress: Progress) -> None:
        """Episodes that begin from now on are those of this phase."""
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
        """Begin episodes: draw for each what is played, and against whom."""
        chosen = np.arange(self.num_envs) if slots is None else slots
        for slot in chosen.tolist():
            self._prepare(slot)
        super().reset(chosen)

    def _prepare(self, slot: int) -> None:
        mode = self._modes.draw(self._rng)
        if slot < self._mains:
            name, deterministic = self._draw.draw(self._rng)
            episode = self._progress.begin_episode()
        else:
            # An exploiter plays by the rules of the agent's newest episode.
            name, deterministic = SELF, False
            episode = max(0, self._progress.begun - 1)
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

    def _first_seen(self, chosen: Array, batch: Batch) -> None:
        self.observations[chosen] = batch.observations[:, 0]
        self._seen_by_second[chosen] = batch.observations[:, 1]

    def step(self, actions: Array) -> Outcome:
        """Step all matches, with actions of the agent as the environment takes them."""
        both = self._actions
        both[:, :NUMBERS] = actions
        self.opponents.act(self._numbers, self._seen_by_second, both[:, NUMBERS:])
        seen, rewards, terminated, truncated, infos = self._pool.step(both)
        columns = cast(ColumnInfos, infos).columns
        self._winners = columns["winner"][:, 0]
        shaped = rewards
        if self._weights.any():
            told = np.stack([columns[name][:, 0] for name in _SHAPED], axis=1)
            shaped = rewards + (told * self._weights).sum(1)
        self._seen_by_second = np.array(seen[:, 1], np.float32)
        first = np.ascontiguousarray(seen[:, 0])
        return self._outcome(rewards, shaped, first, terminated, truncated)

    def _opponent_of(self, slot: int) -> str:
        return self.opponents[int(self._numbers[slot])].name

    def _winner_of(self, slot: int) -> int | None:
        return int(self._winners[slot])

    def _is_match(self, slot: int) -> bool:
        return bool(self._parameters["mode"][slot] == _MATCH)

    def state(self) -> dict[str, Any]:
        """Where all matches are, who plays them and how."""
        return super().state() | {
            "opponents": self.opponents.state(),
            "numbers": self._numbers,
            "weights": self._weights,
            "seen_by_second": self._seen_by_second,
            "parameters": dict(self._parameters),
        }

    def restore(self, state: dict[str, Any], step: int) -> None:
        """Go on where :meth:`state` was taken."""
        self.opponents.restore(state["opponents"])
        self._numbers = state["numbers"].copy()
        self._weights = state["weights"].copy()
        for name, values in state["parameters"].items():
            self._parameters[name] = values.copy()
            for slot, value in enumerate(values.tolist()):
                self._pool.set_parameter(slot, name, value)
        super().restore(state, step)
        self._seen_by_second = state["seen_by_second"].copy()
