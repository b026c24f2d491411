"""Evaluation of agents: games or episodes, played in parallel on a separate vector."""

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
from shoal.train._tasks.flattening import make_flatten
from shoal.train._tasks.sources import EnvSource, env_name, open_vector

__all__ = [
    "Matches",
    "Player",
    "evaluate_single_agent",
    "game_seeds",
    "interval_of_mean",
    "interval_of_rate",
    "play_episodes",
    "play_matches",
]

_MAX_SLOTS = 2048
_MAX_STEPS = 100_000
_Z = 1.959963984540054
"""The 97.5% quantile of the normal distribution, for two-sided 95% intervals."""


class Player(Protocol):
    """Interface of an agent or scripted player that can be evaluated."""

    def act_in_environment(
        self, states: npt.ArrayLike, deterministic: bool = True
    ) -> npt.NDArray[Any]:
        """Return actions in the format of the environment's action space."""


class Matches(NamedTuple):
    """Results of games, one array element per game."""

    winners: npt.NDArray[np.int64]
    """1 if the first player won, -1 if the second player won, 0 for a draw."""
    rewards: npt.NDArray[np.float64]
    """Returns of the first player."""
    lengths: npt.NDArray[np.int64]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws and losses of the first player."""
        return tuple(int((self.winners == winner).sum()) for winner in (1, 0, -1))  # type: ignore[return-value]

    def record(self, step: int, opponent: str) -> EvaluationRecord:
        """Return the results as an evaluation record."""
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
    """Return the 95% confidence interval of a rate (Wilson score interval).

    >>> low, high = interval_of_rate(180, 200)
    >>> round(low, 3), round(high, 3)
    (0.851, 0.934)
    """
    rate, square = successes / count, _Z * _Z
    center = (rate + square / (2 * count)) / (1 + square / count)
    margin = _Z / (1 + square / count)
    margin *= sqrt(rate * (1 - rate) / count + square / (4 * count * count))
    low = center - margin if successes else 0.0
    return low, center + margin if successes < count else 1.0


def interval_of_mean(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the approximate 95% confidence interval of a mean."""
    mean = float(values.mean())
    margin = _Z * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0
    return mean - margin, mean + margin


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
    """Play games of hockey in parallel, each to its end.

    Args:
        first: The first player.
        second: The second player: an agent, ``"weak"``, ``"strong"``, or ``"none"`` for a player
            that does not move.
        games: Number of games. Every game counts, regardless of its length.
        seed: The seed of the games. The same seed gives the same games if the players are
            deterministic.
        mode: The hockey mode.
        keep_mode: Whether rackets can hold the puck.
        deterministic: Whether agents choose their best action instead of sampling.

    Returns:
        Winner, return and length of each game.

    Raises:
        ValueError: If ``games`` is not positive or ``second`` is an unknown name.
    """
    if games < 1:
        raise ValueError(f"games must be a positive number, got {games}")
    if isinstance(second, str) and second not in (*SCRIPTED, "none"):
        raise ValueError(f"second must be an agent, weak, strong or none, got {second!r}")
    seeds = game_seeds(seed, games)
    results = []
    for start in range(0, games, _MAX_SLOTS):
        count = min(_MAX_SLOTS, games - start)
        scripted = second if second in SCRIPTED else None
        with shoal.make(
            HOCKEY, count, autoreset_mode="SameStep", mode=mode, keep_mode=True, opponent=scripted
        ) as envs:
            envs.set_attr("keep_mode", keep_mode)
            envs.reset(seed=seeds[start : start + count])
            opponent = None if isinstance(second, str) else second
            results.append(_play_to_end(envs, first, opponent, count, deterministic))
    return Matches(*(np.concatenate(parts) for parts in zip(*results, strict=True)))


def game_seeds(seed: int, count: int) -> list[int]:
    """Return seeds for games, unrelated to those derived from adjacent seeds."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(count)]


def _play_to_end(
    envs: Any, first: Player, second: Player | None, count: int, deterministic: bool
) -> Matches:
    winners = np.zeros(count, np.int64)
    rewards, lengths = np.zeros(count), np.zeros(count, np.int64)
    active = np.ones(count, bool)
    observations = envs.pool.latest()
    actions = np.zeros((count, 8), np.float32)
    while active.any():
        actions[:, :4] = first.act_in_environment(observations[:, 0], deterministic)
        if second is not None:
            actions[:, 4:] = second.act_in_environment(observations[:, 1], deterministic)
        observations, step_rewards, terminated, truncated, infos = envs.pool.step(actions)
        rewards += step_rewards * active
        lengths += active
        ended = active & (terminated | truncated)
        if ended.any():
            finals = infos.finals
            slots = np.asarray(finals.rows)
            first_game = active[slots]
            winners[slots[first_game]] = finals.columns["winner"][first_game, 0]
            active[ended] = False
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
    """Play episodes and return their returns and lengths.

    Episodes are distributed over the slots in advance, as evenly as possible, so that the result
    is not biased towards short episodes.

    Args:
        agent: The agent.
        env: The environment: anything that :func:`shoal.make` accepts, or a URL for
            :func:`shoal.connect`.
        episodes: Number of episodes.
        arguments: Keyword arguments for :func:`shoal.make` or :func:`shoal.connect`.
        seed: The seed of the environments.
        max_episode_steps: Maximum length of an episode. Defaults to 100,000 steps, with a warning
            if an episode reaches it.
        num_envs: Number of slots. Defaults to ``episodes``, but at most 64.
        deterministic: Whether the agent chooses its best action instead of sampling.

    Raises:
        ValueError: If ``episodes`` is not positive.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be a positive number, got {episodes}")
    count = min(episodes, num_envs or 64)
    remaining = np.full(count, episodes // count) + (np.arange(count) < episodes % count)
    returns: list[float] = []
    lengths: list[int] = []
    options = dict(arguments or {})
    limit = max_episode_steps or _MAX_STEPS
    with open_vector(env, count, autoreset_mode="Disabled", **options) as envs:
        _, flatten = make_flatten(envs.single_observation_space)
        pool = envs.pool
        pool.reset(None, game_seeds(seed, count))
        observations = np.array(flatten(pool.recv().observations))
        total, length = np.zeros(count), np.zeros(count, np.int64)
        while remaining.any():
            results = pool.step(agent.act_in_environment(observations, deterministic))
            observations = np.array(flatten(results[0]))
            total += results[1]
            length += 1
            ended = results[2] | results[3]
            cut = ~ended & (length >= limit) & (remaining > 0)
            if max_episode_steps is None and cut.any():
                warnings.warn(
                    f"an episode of {env_name(env)} has not ended after {limit:,} steps and was "
                    "truncated: set max_episode_steps (training.max_episode_steps in a config)",
                    RuntimeWarning,
                    stacklevel=2,
                )
            slots = np.flatnonzero(ended | (length >= limit))
            if len(slots):
                for slot in slots[remaining[slots] > 0]:
                    returns.append(float(total[slot]))
                    lengths.append(int(length[slot]))
                remaining[slots] = np.maximum(remaining[slots] - 1, 0)
                total[slots], length[slots] = 0.0, 0
                pool.reset(slots)
                observations[slots] = flatten(pool.recv().observations)
    return np.array(returns), np.array(lengths)


def evaluate_single_agent(
    agent: Player,
    step: int,
    env: EnvSource,
    episodes: int,
    arguments: Mapping[str, Any],
    seed: int,
    max_episode_steps: int | None,
) -> EvaluationRecord:
    """Evaluate an agent in an environment without opponents."""
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
