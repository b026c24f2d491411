"""Entry points that start and resume training runs."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from msgspec import structs

from shoal.errors import ConfigError
from shoal.train._agents import load_agent
from shoal.train._config import HOCKEY, Config, checked, load_config
from shoal.train._config.loading import settings_of, unused_settings
from shoal.train._reporting import Display, Reporter
from shoal.train._runs.config_checks import check_opponents
from shoal.train._runs.devices import choose_device, useful_threads
from shoal.train._runs.folder import RunFolder, RunPlan, training_env
from shoal.train._runs.run import Run
from shoal.train._tasks.sources import EnvSource, default_num_envs, env_name, registered_id
from shoal.train._video import film

__all__ = ["resume_run", "train_single_run"]


def train_single_run(
    config_path: str | Path | Config,
    base_output_dir: str | Path = "results/runs",
    run_name: str | None = None,
    verbose: bool = True,
    eval_freq_steps: int | None = None,
    eval_num_games: int | None = None,
    eval_weak_opponent: bool | None = None,
    device: str | int | torch.device | None = None,
    checkpoint_path: str | Path | None = None,
    num_envs: int | None = None,
    seed: int | None = None,
    *,
    env: EnvSource | None = None,
    displays: Sequence[Display] = (),
) -> dict[str, Any]:
    """Train an agent as described by a config.

    All output is written to one folder: checkpoints, agents, logs, plots and a report. Ctrl-C saves
    the run; :func:`resume_run` continues it.

    Args:
        config_path: A JSON file, the name of a bundled config, or a config object.
        base_output_dir: The folder in which the run's folder is created.
        run_name: The name of the run. Defaults to a name with date, agent and number of
            environments.
        verbose: Whether to show progress in the terminal.
        eval_freq_steps: Number of environment steps between evaluations.
        eval_num_games: Number of games, or episodes, per evaluation.
        eval_weak_opponent: Whether to evaluate against the weak scripted player (True) or the
            strong one (False). Defaults to the opponents in the config, or both.
        device: The device on which the agent computes, such as ``"cuda"``. Defaults to a GPU if
            one is available.
        checkpoint_path: An agent file, a checkpoint or a run whose agent is trained further.
        num_envs: Number of environments that are stepped together. Defaults to the value in the
            config, or 1.
        seed: The seed of all random numbers. Defaults to the value in the config, or a random seed.
        env: The environment to train on instead of the config's ``task.id``: anything that
            :func:`shoal.make` accepts, or a URL for :func:`shoal.connect`. Each evaluation creates
            a separate vector.
        displays: Displays of the run's progress besides the terminal, such as
            :class:`shoal.live._training_page.TrainingPage`. They are closed when the run ends.

    Returns:
        A dict with ``run_name``, ``run_folder``, ``total_steps``, ``total_episodes``,
        ``total_gradient_steps``, ``mean_reward`` (of the last 100 episodes), ``final_reward``,
        ``evaluation_results`` and throughput figures.

    Raises:
        ConfigError: If the config is invalid. The run is not started.
        KeyboardInterrupt: If Ctrl-C was pressed. The run was saved.

    Example:
        >>> import tempfile
        >>> from shoal.train._config import parse_config
        >>> config = parse_config({
        ...     "task": {"id": "CartPole-v1"},
        ...     "curriculum": {"phases": [{"name": "balance", "steps": 400}]},
        ...     "agent": {"type": "DDDQN"},
        ...     "training": {"warmup_steps": 300, "video_episodes": 0, "eval_num_games": 2},
        ... })
        >>> result = train_single_run(
        ...     config, tempfile.mkdtemp(), verbose=False, device="cpu", num_envs=4, seed=0
        ... )
        >>> result["total_steps"], result["total_gradient_steps"]
        (400, 100)
    """
    config = checked(config_path) if isinstance(config_path, Config) else load_config(config_path)
    if env is not None:
        env = registered_id(env)
        config = _with_task(config, env)
    else:
        env = config.task.id
    count = _checked_int("num_envs", num_envs) or config.num_envs or default_num_envs(env)
    for name in unused_settings(config):
        warnings.warn(
            f"training.{name} is not used: {config.agent.type} is an on-policy algorithm and "
            "schedules its updates itself",
            stacklevel=2,
        )
    training = config.training
    is_hockey = env == HOCKEY
    opponents = training.eval_opponents or ["weak", "strong"]
    if eval_weak_opponent is not None:
        opponents = ["weak" if eval_weak_opponent else "strong"]
    agent_files = check_opponents(config, opponents) if is_hockey else []
    initial_agent = None if checkpoint_path is None else str(checkpoint_path)
    if initial_agent is not None:
        load_agent(initial_agent)
        agent_files.append(initial_agent)
    games = _checked_int("eval_num_games", eval_num_games) or training.eval_num_games
    frequency = _checked_int("eval_freq_steps", eval_freq_steps) or training.eval_freq_steps
    requested_seed = config.seed if seed is None else _checked_int("seed", seed, minimum=0)
    device_name = choose_device(device)
    folder = RunFolder.create(base_output_dir, run_name, config, count)
    plan = RunPlan(
        name=folder.path.name,
        config=config,
        num_envs=count,
        seed=secrets.randbits(31) if requested_seed is None else requested_seed,
        device=device_name,
        eval_freq_steps=frequency or 100_000,
        eval_num_games=games or (200 if is_hockey else 20),
        eval_opponents=list(opponents),
        threads=useful_threads(settings_of(config), count) if device_name == "cpu" else None,
        initial_agent=initial_agent,
        env_from_caller=not isinstance(env, str),
    )
    with folder.held():
        try:
            plan = structs.replace(plan, agent_copies=folder.copy_agents(agent_files))
            run = _start(plan, folder, env)
        except BaseException:
            folder.discard()
            raise
        return _train(run, None, verbose, displays)


def _with_task(config: Config, env: EnvSource) -> Config:
    """Return the config with ``env`` as its task, and check that they fit."""
    name = env_name(env)
    if name == HOCKEY != env:
        raise ConfigError(f"env: {HOCKEY} cannot be modified: pass its id")
    task = structs.replace(config.task, id=name)
    return checked(structs.replace(config, task=task))


def _start(plan: RunPlan, folder: RunFolder, env: EnvSource) -> Run:
    run = Run(plan, folder, env)
    try:
        run.initialize_agents()
        folder.write_plan(plan)
    except BaseException:
        run.close()
        raise
    return run


def _checked_int(name: str, value: Any, minimum: int = 1) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        expected = "a positive integer" if minimum else "a non-negative integer"
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return int(value)


def resume_run(
    folder: str | Path,
    checkpoint: str | None = None,
    *,
    verbose: bool = True,
    device: str | int | torch.device | None = None,
    env: EnvSource | None = None,
    displays: Sequence[Display] = (),
) -> dict[str, Any]:
    """Resume an interrupted or killed run from its newest checkpoint.

    On the CPU, with native environments (kernels), the result is bit for bit that of an
    uninterrupted run. Python environments start new episodes.

    Args:
        folder: The folder of the run.
        checkpoint: The name of a checkpoint. Defaults to the newest.
        verbose: Whether to show progress in the terminal.
        device: The device on which the agent computes. Defaults to that of the run. Another device
            gives other random numbers.
        env: The ``env`` argument with which the run was started, if it was not an id or a URL.
        displays: See :func:`train_single_run`.

    Returns:
        The same dict as :func:`train_single_run`.

    Raises:
        CheckpointError: If the checkpoint is damaged, or the run does not exist.
        RunInUseError: If the run is in progress.
    """
    run_folder = RunFolder(folder)
    plan = run_folder.read_plan()
    env = training_env(plan, env)
    device_name = choose_device(plan.device if device is None else device)
    with run_folder.held():
        run_folder.remove_unfinished_files()
        run = Run(structs.replace(plan, device=device_name), run_folder, env)
        try:
            logs = run.restore(checkpoint)
            if logs is None:
                run_folder.delete_logs()
        except BaseException:
            run.close()
            raise
        return _train(run, logs, verbose, displays)


def _train(
    run: Run, logs: dict[str, int] | None, verbose: bool, displays: Sequence[Display]
) -> dict[str, Any]:
    plan, folder = run.plan, run.folder
    phases = [phase.name for phase in plan.config.curriculum.phases]
    try:
        reporter = Reporter(
            folder.path,
            plan.name,
            phases,
            verbose=verbose,
            truncate_to=logs,
            resumed_step=run.steps,
            displays=displays,
        )
        with reporter:
            reporter.begin(run.envs)
            is_over = run.train(reporter)
            result = run.result()
            if is_over:
                run.agent.save(folder.final_agent)
                folder.write_result(result)
                if plan.config.training.video_episodes:
                    _write_video(run, reporter)
            # The report builds the table of evaluations from the logs.
            figures = {name: value for name, value in result.items() if not isinstance(value, list)}
            reporter.finish(figures, run.config())
            if not is_over:
                raise KeyboardInterrupt(f"saved; resume with: shoal resume {folder.path}")
    finally:
        run.close()
    return result


def _write_video(run: Run, reporter: Reporter) -> None:
    folder, config = run.folder, run.plan.config
    opponent = run.plan.eval_opponents[-1]
    try:
        film(
            load_agent(folder.best_agent, run.plan.device),
            folder.video,
            run.env,
            arguments=config.task.arguments,
            opponent=str(folder.agent_file(opponent, run.plan)),
            episodes=config.training.video_episodes,
            keep_mode=run.plan.keep_mode,
        )
    except Exception as error:  # a failing environment must not fail the finished run
        warnings.warn(f"the video could not be recorded: {error!r}", RuntimeWarning, stacklevel=2)
    else:
        reporter.note(f"video: {folder.video}")
