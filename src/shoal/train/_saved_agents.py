"""Evaluation, tournaments and videos of saved agents, as used by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shoal.train._agents import Agent, load_agent
from shoal.train._config.loading import HOCKEY
from shoal.train._evaluation import evaluate_single_agent, play_matches
from shoal.train._league import run_tournament
from shoal.train._league.standings import Standings
from shoal.train._records import EvaluationRecord
from shoal.train._runs.config_checks import check_plays_hockey
from shoal.train._runs.devices import choose_device
from shoal.train._runs.folder import RunFolder, training_env
from shoal.train._scripted import SCRIPTED, ScriptedPlayer
from shoal.train._tasks.sources import EnvSource, env_name, registered_id
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
    """Evaluate a saved agent.

    Args:
        path: The folder of a run, or an agent file.
        opponents: In hockey: ``weak``, ``strong``, or agent files. If empty, the agent plays
            against both scripted opponents.
        games: Number of games, or episodes, per opponent.
        env: The environment. Defaults to that of the run, or to hockey.
        seed: The seed of the games.
        device: The device on which the agents compute.

    Returns:
        One record per opponent; a single record if the environment has no opponents.
    """
    device = choose_device(device)
    agent = load_agent(path, device)
    setup = _evaluation_setup(Path(path), env)
    if setup.env != HOCKEY:
        if opponents:
            raise ValueError(f"only {HOCKEY} has opponents, not {env_name(setup.env)}")
        return [
            evaluate_single_agent(
                agent, 0, setup.env, games, setup.arguments, seed, setup.max_episode_steps
            )
        ]
    check_plays_hockey(agent, f"{path} (use --env to select another environment)")
    return [
        play_matches(
            agent, _player(opponent, device), games, seed=seed, keep_mode=setup.keep_mode
        ).record(0, opponent)
        for opponent in opponents or SCRIPTED
    ]


def _player(name: str, device: str) -> Agent | str:
    if name in SCRIPTED:
        return name
    agent = load_agent(name, device)
    check_plays_hockey(agent, name)
    return agent


class _EvaluationSetup(NamedTuple):
    """The environment and settings with which a saved agent is evaluated."""

    env: EnvSource
    arguments: dict[str, Any]
    max_episode_steps: int | None
    keep_mode: bool


def _evaluation_setup(path: Path, requested: EnvSource | None) -> _EvaluationSetup:
    """Return the setup of the agent's run; otherwise the requested environment, or hockey."""
    if requested is not None:
        requested = registered_id(requested)
    folders = [path] if path.is_dir() else [path.parent, path.parent.parent]
    runs = [folder for folder in folders if (folder / "run.json").is_file()]
    plan = RunFolder(runs[0]).read_plan() if runs else None
    if plan is None or (isinstance(requested, str) and requested != plan.config.task.id):
        return _EvaluationSetup(HOCKEY if requested is None else requested, {}, None, True)
    task, training = plan.config.task, plan.config.training
    env = training_env(plan, requested)
    return _EvaluationSetup(env, task.arguments, training.max_episode_steps, plan.keep_mode)


def play_tournament(
    names: Sequence[str], games: int, *, seed: int = 0, device: str = "cpu"
) -> Standings:
    """Play a round-robin hockey tournament.

    Args:
        names: Folders of runs, agent files, ``weak`` or ``strong``, without duplicates.
        games: Number of games per pair. Must be even: each player plays half of them on each side.
        seed: The seed of the games.
        device: The device on which the agents compute.
    """
    distinct = {name if name in SCRIPTED else str(Path(name).resolve()) for name in names}
    if len(distinct) < len(names) or len(names) < 2:
        raise ValueError(f"a tournament needs two players or more, each once, got {list(names)}")
    device = choose_device(device)
    players = {name: _player(name, device) for name in names}

    def play(first: str, second: str, count: int) -> tuple[int, int, int]:
        player = players[first]
        first_player = ScriptedPlayer(player, seed) if isinstance(player, str) else player
        return play_matches(first_player, players[second], count, seed=seed).counts

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
    """Record a video of a saved agent.

    Args:
        path: The folder of a run, or an agent file.
        output: The video file. Defaults to ``video.mp4`` in the run's folder, or to the agent's
            file name with the suffix ``.mp4``.
        opponent: In hockey: ``weak``, ``strong``, or an agent file.
        episodes: Number of episodes.
        env: The environment. Defaults to that of the run, or to hockey.
        seed: The seed of the environment.

    Returns:
        The path of the video.
    """
    path = Path(path)
    setup = _evaluation_setup(path, env)
    if output is None:
        output = path / "video.mp4" if path.is_dir() else path.with_suffix(".mp4")
    return film(
        load_agent(path),
        output,
        setup.env,
        arguments=setup.arguments,
        opponent=opponent,
        episodes=episodes,
        seed=seed,
        keep_mode=setup.keep_mode,
    )
