"""Agents of runs and files, evaluated, ranked and filmed, as the command line does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.train.agents import Agent, load_agent
from shoal.train.config.loading import HOCKEY
from shoal.train.evaluation import evaluate_alone, play_matches
from shoal.train.league import run_tournament
from shoal.train.league.standings import Standings
from shoal.train.records import EvaluationRecord
from shoal.train.runs.checking import must_play_hockey
from shoal.train.runs.devices import choose_device
from shoal.train.runs.folder import RunFolder
from shoal.train.scripted import SCRIPTED, ScriptedPlayer
from shoal.train.video import film

__all__ = ["evaluate_agent", "film_agent", "play_tournament"]


def evaluate_agent(
    path: str | Path,
    opponents: Sequence[str],
    games: int,
    *,
    env: str | None = None,
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
    name, arguments, limit = _environment(Path(path), env)
    if name != HOCKEY:
        if opponents:
            raise ValueError(f"only {HOCKEY} has opponents, not {name}")
        return [evaluate_alone(agent, 0, name, games, arguments, seed, limit)]
    must_play_hockey(agent, f"{path} (another environment is named by --env)")
    return [
        play_matches(agent, _player(other, device), games, seed=seed).record(0, other)
        for other in opponents or SCRIPTED
    ]


def _player(name: str, device: str) -> Agent | str:
    if name in SCRIPTED:
        return name
    agent = load_agent(name, device)
    must_play_hockey(agent, name)
    return agent


def _environment(path: Path, wanted: str | None) -> tuple[str, dict[str, Any], int | None]:
    """What a run is trained on, and with what; hockey for an agent that is of no run."""
    folders = [path] if path.is_dir() else [path.parent, path.parent.parent]
    runs = [folder for folder in folders if (folder / "run.json").is_file()]
    if wanted is not None or not runs:
        return wanted or HOCKEY, {}, None
    config = RunFolder(runs[0]).read_plan().config
    return config.task.id, config.task.arguments, config.training.max_episode_steps


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
    if len(set(names)) < len(names) or len(names) < 2:
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
    env: str | None = None,
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
    there = Path(path)
    name, arguments, _ = _environment(there, env)
    if output is None:
        output = there / "video.mp4" if there.is_dir() else there.with_suffix(".mp4")
    agent = load_agent(there)
    return film(
        agent, output, name, arguments=arguments, opponent=opponent, episodes=episodes, seed=seed
    )
