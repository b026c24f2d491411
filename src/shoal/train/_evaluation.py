"""How good an agent is: games, or episodes, side by side on a vector of their own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

import shoal
from shoal.train._config.loading import HOCKEY
from shoal.train._records import EvaluationRecord
from shoal.train._scripted import SCRIPTED
from shoal.train._tasks.flattening import flattening
from shoal.train._tasks.sources import EnvSource, name_of, open_vector

__all__ = [
    "Matches",
    "Player",
    "evaluate_alone",
    "game_seeds",
    "interval_of_mean",
    "interval_of_rate",
    "play_episodes",
    "play_matches",
]

_MOST_SLOTS = 2048
_MOST_STEPS = 100_000
_Z = 1.959963984540054
"""So many deviations to both sides lie 95% of a normal distribution."""


class Player(Protocol):
    """Who can play: agents, and others that act like them."""

    def act_in_environment(
        self, states: npt.ArrayLike, deterministic: bool = True
    ) -> npt.NDArray[Any]:
        """Actions as the environment takes them."""


class Matches(NamedTuple):
    """What came of games: a number for each."""

    winners: npt.NDArray[np.int64]
    """1 for the first player, -1 for the second, 0 for nobody."""
    rewards: npt.NDArray[np.float64]
    """Of the first player."""
    lengths: npt.NDArray[np.int64]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws and losses of the first player."""
        return tuple(int((self.winners == winner).sum()) for winner in (1, 0, -1))  # type: ignore[return-value]

    def record(self, step: int, opponent: str) -> EvaluationRecord:
        """The games as they are told."""
        wins, draws, losses = self.counts
        games = len(self.winners)
        low, high = interval_of_rate(wins, games)
        return EvaluationRecord(
            step=step,
            opponent=opponent,
            games=games,
            wins=wins,
            draws=draws,
            losses=losses,
            win_rate=wins / games,
            low=low,
            high=high,
            mean_reward=float(self.rewards.mean()),
            mean_length=float(self.lengths.mean()),
        )


def interval_of_rate(successes: int, count: int) -> tuple[float, float]:
    """Between which bounds a rate lies with a probability of 95% (Wilson's interval).

    >>> low, high = interval_of_rate(180, 200)
    >>> round(low, 3), round(high, 3)
    (0.851, 0.934)
    """
    rate, square = successes / count, _Z * _Z
    middle = (rate + square / (2 * count)) / (1 + square / count)
    reach = _Z / (1 + square / count)
    reach *= sqrt(rate * (1 - rate) / count + square / (4 * count * count))
    low = middle - reach if successes else 0.0
    return low, middle + reach if successes < count else 1.0


def interval_of_mean(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Between which bounds a mean lies with a probability of about 95%."""
    mean = float(values.mean())
    reach = _Z * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0
    return mean - reach, mean + reach


def play_matches(
    first: Player,
    second: Player | str,
    games: int,
    *,
    seed: int = 0,
    mode: str = "NORMAL",
    keep_mode: bool = True,
    deterministic: bool = True,
) -> Matches:
    """Let an agent play hockey, all games at the same time, each to its end.

    Args:
        first: The agent.
        second: Another one, or ``"weak"`` or ``"strong"``, or ``"none"`` for one who stands still.
        games: How many. Every game counts, however long it takes.
        seed: Of the games. The same seed is the same games, for players that do not draw.
        mode: What is played.
        keep_mode: Whether rackets keep the puck.
        deterministic: Whether agents do what they hold best.
    """
    if games < 1:
        raise ValueError(f"games must be a positive number, got {games}")
    if isinstance(second, str) and second not in (*SCRIPTED, "none"):
        raise ValueError(f"an opponent is an agent, weak, strong or none, got {second!r}")
    seeds = game_seeds(seed, games)
    found = []
    for start in range(0, games, _MOST_SLOTS):
        count = min(_MOST_SLOTS, games - start)
        scripted = second if second in SCRIPTED else None
        with shoal.make(
            HOCKEY, count, autoreset_mode="SameStep", mode=mode, keep_mode=True, opponent=scripted
        ) as envs:
            envs.set_attr("keep_mode", keep_mode)
            envs.reset(seed=seeds[start : start + count])
            other = None if isinstance(second, str) else second
            found.append(_play(envs, first, other, count, deterministic))
    return Matches(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def game_seeds(seed: int, count: int) -> list[int]:
    """Unrelated ones: games of one evaluation are not those of another one with the next seed."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count)]


def _play(
    envs: Any, first: Player, second: Player | None, count: int, deterministic: bool
) -> Matches:
    winners = np.zeros(count, np.int64)
    rewards, lengths = np.zeros(count), np.zeros(count, np.int64)
    goes_on = np.ones(count, bool)
    seen = envs.pool.latest()
    actions = np.zeros((count, 8), np.float32)
    while goes_on.any():
        actions[:, :4] = first.act_in_environment(seen[:, 0], deterministic)
        if second is not None:
            actions[:, 4:] = second.act_in_environment(seen[:, 1], deterministic)
        seen, gained, terminated, truncated, infos = envs.pool.step(actions)
        rewards += gained * goes_on
        lengths += goes_on
        ended = goes_on & (terminated | truncated)
        if ended.any():
            finals = infos.finals
            slots = np.asarray(finals.rows)
            new = goes_on[slots]
            winners[slots[new]] = finals.columns["winner"][new, 0]
            goes_on[ended] = False
    return Matches(winners, rewards, lengths)


def play_episodes(
    agent: Player,
    env: EnvSource,
    episodes: int,
    *,
    arguments: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_episode_steps: int | None = None,
    num_envs: int | None = None,
    deterministic: bool = True,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Let an agent act in an environment; the returns and lengths of its episodes.

    Each slot plays as many episodes as any other, or one more, so that short ones do not count
    more often than long ones.

    Args:
        agent: Who acts.
        env: What it acts in.
        episodes: How many.
        arguments: Given to :func:`shoal.make`, or :func:`shoal.connect`.
        seed: Of the environments.
        max_episode_steps: Where episodes are cut, if they have not ended before; by default after
            100,000 steps, with a warning.
        num_envs: How many at a time; by default up to 64.
        deterministic: Whether the agent does what it holds best.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be a positive number, got {episodes}")
    count = min(episodes, num_envs or 64)
    left = np.full(count, episodes // count) + (np.arange(count) < episodes % count)
    returns: list[float] = []
    lengths: list[int] = []
    options = dict(arguments or {})
    limit = max_episode_steps or _MOST_STEPS
    with open_vector(env, count, autoreset_mode="Disabled", **options) as envs:
        _, flatten = flattening(envs.single_observation_space)
        pool = envs.pool
        pool.reset(None, game_seeds(seed, count))
        seen = np.array(flatten(pool.recv().observations))
        total, length = np.zeros(count), np.zeros(count, np.int64)
        while left.any():
            results = pool.step(agent.act_in_environment(seen, deterministic))
            seen = np.array(flatten(results[0]))
            total += results[1]
            length += 1
            ended = results[2] | results[3]
            cut = ~ended & (length >= limit) & (left > 0)
            if max_episode_steps is None and cut.any():
                warnings.warn(
                    f"an episode of {name_of(env)} has not ended after {limit:,} steps, and was "
                    "cut there: give max_episode_steps, in a config training.max_episode_steps",
                    RuntimeWarning,
                    stacklevel=2,
                )
            slots = np.flatnonzero(ended | (length >= limit))
            if len(slots):
                for slot in slots[left[slots] > 0]:
                    returns.append(float(total[slot]))
                    lengths.append(int(length[slot]))
                left[slots] = np.maximum(left[slots] - 1, 0)
                total[slots], length[slots] = 0.0, 0
                pool.reset(slots)
                seen[slots] = flatten(pool.recv().observations)
    return np.array(returns), np.array(lengths)


def evaluate_alone(
    agent: Player,
    step: int,
    env: EnvSource,
    episodes: int,
    arguments: Mapping[str, Any],
    seed: int,
    max_episode_steps: int | None,
) -> EvaluationRecord:
    """Play episodes where there is nobody to play against, and tell what came of them."""
    returns, lengths = play_episodes(
        agent,
        env,
        episodes,
        arguments=arguments,
        seed=seed,
        max_episode_steps=max_episode_steps,
    )
    low, high = interval_of_mean(returns)
    return EvaluationRecord(
        step=step,
        opponent="",
        games=len(returns),
        wins=None,
        draws=None,
        losses=None,
        win_rate=None,
        low=low,
        high=high,
        mean_reward=float(returns.mean()),
        mean_length=float(lengths.mean()),
    )
