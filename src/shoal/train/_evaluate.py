"""Agents of runs and files, evaluated, ranked and filmed, as the command line does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.train._agents import Agent, load_agent
from shoal.train._config.loading import HOCKEY
from shoal.train._evaluation import evaluate_alone, play_matches
from shoal.train._league import run_tournament
from shoal.train._league.standings import Standings
from shoal.train._records import EvaluationRecord
from shoal.train._runs.config_checks import must_play_hockey
from shoal.train._runs.devices import choose_device
from shoal.train._runs.folder import RunFolder, trained_env
from shoal.train._scripted import SCRIPTED, ScriptedPlayer
from shoal.train._tasks.sources import EnvSource, by_its_id, name_of
from shoal.train._video import film

__all__ = ["evaluate_agent", "film_agent", "play_tournament"]


def evaluate_agent(
    path: str | Path,
    opponents: Sequence[str],
    games: int,
    *,
    env: EnvSource | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> list[EvaluationRecord]:
    """How good an agent is.

    Args:
        path: A run, or the file of an agent.
        opponents: In hockey: ``weak``, ``strong``, or agents; both scripted ones if there is none.
        games: How many, for each opponent.
        env: The environment; that of the run, or hockey.
        seed: Of the games.
        device: Where the agents compute.
    """
    device = choose_device(device)
    agent = load_agent(path, device)
    there = _surroundings(Path(path), env)
    if there.env != HOCKEY:
        if opponents:
            raise ValueError(f"only {HOCKEY} has opponents, not {name_of(there.env)}")
        return [evaluate_alone(agent, 0, there.env, games, there.arguments, seed, there.limit)]
    must_play_hockey(agent, f"{path} (another environment is named by --env)")
    return [
        play_matches(
            agent, _player(other, device), games, seed=seed, keep_mode=there.keeps_puck
        ).record(0, other)
        for other in opponents or SCRIPTED
    ]


def _player(name: str, device: str) -> Agent | str:
    if name in SCRIPTED:
        return name
    agent = load_agent(name, device)
    must_play_hockey(agent, name)
    return agent


class _Surroundings(NamedTuple):
    """What an agent acts in."""

    env: EnvSource
    arguments: dict[str, Any]
    limit: int | None
    keeps_puck: bool


def _surroundings(path: Path, wanted: EnvSource | None) -> _Surroundings:
    """Those of the run that the agent is of; else what is wanted, or hockey."""
    if wanted is not None:
        wanted = by_its_id(wanted)
    folders = [path] if path.is_dir() else [path.parent, path.parent.parent]
    runs = [folder for folder in folders if (folder / "run.json").is_file()]
    plan = RunFolder(runs[0]).read_plan() if runs else None
    if plan is None or (isinstance(wanted, str) and wanted != plan.config.task.id):
        return _Surroundings(HOCKEY if wanted is None else wanted, {}, None, True)
    task, training = plan.config.task, plan.config.training
    env = trained_env(plan, wanted)
    return _Surroundings(env, task.arguments, training.max_episode_steps, plan.keeps_puck)


def play_tournament(
    names: Sequence[str], games: int, *, seed: int = 0, device: str = "cpu"
) -> Standings:
    """Let agents play hockey, each against each.

    Args:
        names: Runs, files of agents, ``weak`` or ``strong``; each once.
        games: Of each pair, an even number: one half of them on each side.
        seed: Of the games.
        device: Where the agents compute.
    """
    places = {name if name in SCRIPTED else str(Path(name).resolve()) for name in names}
    if len(places) < len(names) or len(names) < 2:
        raise ValueError(f"a tournament needs two players or more, each once, got {list(names)}")
    device = choose_device(device)
    players = {name: _player(name, device) for name in names}

    def play(first: str, second: str, count: int) -> tuple[int, int, int]:
        one = players[first]
        player = ScriptedPlayer(one, seed) if isinstance(one, str) else one
        return play_matches(player, players[second], count, seed=seed).counts

    return run_tournament(names, play, games)


def film_agent(
    path: str | Path,
    output: str | Path | None,
    opponent: str,
    episodes: int,
    *,
    env: EnvSource | None = None,
    seed: int = 0,
) -> Path:
    """Film what an agent does.

    Args:
        path: A run, or the file of an agent.
        output: The video; by default ``video.mp4`` in the run, or beside the file.
        opponent: In hockey: ``weak``, ``strong``, or an agent.
        episodes: How many.
        env: The environment; that of the run, or hockey.
        seed: Of the environment.
    """
    path = Path(path)
    there = _surroundings(path, env)
    if output is None:
        output = path / "video.mp4" if path.is_dir() else path.with_suffix(".mp4")
    return film(
        load_agent(path),
        output,
        there.env,
        arguments=there.arguments,
        opponent=opponent,
        episodes=episodes,
        seed=seed,
        keep_mode=there.keeps_puck,
    )
