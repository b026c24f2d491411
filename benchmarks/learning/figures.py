"""What is measured of learning, and what must be reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.judging import Bench, Contest, Figure, rate, times
from benchmarks.learning.cells import CURRICULUM, environments
from benchmarks.learning.settings import LearningSettings
from shoal._bench.results import Cell, summarize

__all__ = ["GAMES", "GUIDE", "Plan", "planned"]

GUIDE = {1: 2_328, 4: 3_319, 8: 5_661}
"""Environment steps per second that the guide tells of, by the number of environments."""

GAMES = 200
"""Of an evaluation."""

_BATCH = 256
_COLLECTION = {1: None, 8: 3.0, 256: 30.0}
"""How many times the guide's best must be reached with so many environments."""
_TIMES_PEER = {"cpu": 1.2, "cuda": 4.0}


class Plan(NamedTuple):
    """What is to be measured."""

    contests: list[Contest]
    figures: list[Figure]


def planned(settings: LearningSettings, text: str = "") -> Plan:
    """Choose what is measured on a device: all of it, or what has this text in its description."""
    figures = [figure for figure in _required(settings) if text in figure.what]
    needed = {figure.contest for figure in figures}
    contests = [
        contest
        for contest in _contests(settings)
        if text in f"{contest.workload} {contest.num_envs}" or contest in needed
    ]
    return Plan(contests, figures)


def _contests(settings: LearningSettings) -> list[Contest]:
    return [
        *(_collection(count) for count in _COLLECTION),
        Contest("SAC updates", _BATCH, ("shoal-sac", "sb3-sac")),
        Contest("DQN updates", _BATCH, ("shoal-dddqn", "sb3-dqn")),
        Contest("DQN updates", _BATCH, ("shoal-as-dqn", "sb3-dqn")),
        Contest("PPO", settings.num_ppo_envs, ("shoal-ppo",)),
        Contest(CURRICULUM, max(GUIDE), tuple(environments(count) for count in GUIDE)),
        *(Contest("evaluation", GAMES, (opponent,)) for opponent in ("weak", "strong")),
    ]


def _required(settings: LearningSettings) -> list[Figure]:
    on_gpu = settings.device == "cuda"
    wanted = _TIMES_PEER[settings.device]
    figures = [
        _times_guide(count, at_least)
        for count, at_least in _COLLECTION.items()
        if at_least is not None
    ]
    figures += [
        times("shoal-sac", "sb3-sac", "SAC updates", _BATCH, at_least=wanted),
        times("shoal-dddqn", "sb3-dqn", "DQN updates", _BATCH, at_least=wanted),
        times("shoal-as-dqn", "sb3-dqn", "DQN updates", _BATCH, at_least=wanted),
    ]
    if on_gpu:
        figures += [
            _updates_of_sac(at_least=725.0),
            rate("shoal-ppo", "PPO", settings.num_ppo_envs, at_least=0.5),
        ]
    return figures + [_seconds_of_games(opponent, at_most=2.0) for opponent in ("weak", "strong")]


def _collection(num_envs: int) -> Contest:
    return Contest("collection", num_envs, ("shoal-dddqn",))


def _times_guide(num_envs: int, at_least: float) -> Figure:
    best = max(GUIDE.values())
    return Figure(
        f"collection {num_envs}: shoal-dddqn times the guide's {best:,} steps/s",
        _of_median(_collection(num_envs), lambda median: median / best),
        at_least,
        contest=_collection(num_envs),
    )


def _updates_of_sac(at_least: float) -> Figure:
    contest = Contest("SAC updates", _BATCH, ("shoal-sac", "sb3-sac"))
    return Figure(
        f"SAC updates {_BATCH}: shoal-sac, updates/s",
        _of_median(contest, float),
        at_least,
        contest=contest,
    )


def _seconds_of_games(opponent: str, at_most: float) -> Figure:
    contest = Contest("evaluation", GAMES, (opponent,))
    return Figure(
        f"evaluation {GAMES}: seconds for {GAMES} games against {opponent}",
        _of_median(contest, lambda median: GAMES / median),
        at_most=at_most,
        contest=contest,
    )


def _of_median(
    contest: Contest, found: Callable[[float], float]
) -> Callable[[Bench], float | None]:
    """Measure what follows from the median rate of the first contender of a contest."""

    def measure(bench: Bench) -> float | None:
        cell: Cell = bench.cell(contest.workload, contest.num_envs)
        rates = cell.rates.get(contest.contenders[0])
        return None if rates is None else found(summarize(rates).median)

    return measure
