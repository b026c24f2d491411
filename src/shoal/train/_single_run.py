"""Runs as users begin them, and go on with them."""

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
from shoal.train._runs.folder import RunFolder, RunPlan, trained_env
from shoal.train._runs.run import Run
from shoal.train._tasks.sources import EnvSource, by_its_id, name_of, slots_of
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
    """Train an agent as a config says.

    Everything that it leaves is in one folder: checkpoints, agents, logs, plots, a report. Ctrl-C
    saves, and :func:`resume_run` goes on.

    Args:
        config_path: A JSON file, the name of a config that comes along, or a config.
        base_output_dir: Where the folder of the run is made.
        run_name: What it is called; by default after date, agent and number of environments.
        verbose: Whether anything is shown.
        eval_freq_steps: Environment steps between evaluations.
        eval_num_games: Games, or episodes, of an evaluation.
        eval_weak_opponent: Whether evaluations are against the weak scripted player, or against the
            strong one; by default against those that the config names, or both.
        device: Such as ``"cuda"``; a GPU if there is one.
        checkpoint_path: Begin with what an agent has learnt: its file, a checkpoint or a run.
        num_envs: How many environments are stepped at once; as the config says, or 1.
        seed: Of everything that is random; as the config says, or any.
        env: What is trained on, in the place of the config's ``task.id``: whatever
            :func:`shoal.make` takes, or a URL for :func:`shoal.connect`. Each evaluation makes a
            vector of its own.
        displays: What shows how the run is doing, besides the terminal, such as
            :class:`shoal.live._training_page.TrainingPage`. They are closed with the run.

    Returns:
        ``run_name``, ``run_folder``, ``total_steps``, ``total_episodes``, ``total_gradient_steps``,
        ``mean_reward`` (of the last 100 episodes), ``final_reward``, ``evaluation_results``, and
        how fast it was.

    Raises:
        ConfigError: Something in the config is wrong; nothing was begun.
        KeyboardInterrupt: Ctrl-C was pressed; everything was saved.

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
        env = by_its_id(env)
        config = _with_task(config, env)
    else:
        env = config.task.id
    count = _whole("num_envs", num_envs) or config.num_envs or slots_of(env)
    for name in unused_settings(config):
        warnings.warn(
            f"training.{name} is not used: {config.agent.type} learns from what it has just done, "
            "at a pace of its own",
            stacklevel=2,
        )
    training = config.training
    is_hockey = env == HOCKEY
    opponents = training.eval_opponents or ["weak", "strong"]
    if eval_weak_opponent is not None:
        opponents = ["weak" if eval_weak_opponent else "strong"]
    named = check_opponents(config, opponents) if is_hockey else []
    initial = None if checkpoint_path is None else str(checkpoint_path)
    if initial is not None:
        load_agent(initial)
        named.append(initial)
    games = _whole("eval_num_games", eval_num_games) or training.eval_num_games
    often = _whole("eval_freq_steps", eval_freq_steps) or training.eval_freq_steps
    chosen = config.seed if seed is None else _whole("seed", seed, least=0)
    where = choose_device(device)
    folder = RunFolder.create(base_output_dir, run_name, config, count)
    plan = RunPlan(
        name=folder.path.name,
        config=config,
        num_envs=count,
        seed=secrets.randbits(31) if chosen is None else chosen,
        device=where,
        eval_freq_steps=often or 100_000,
        eval_num_games=games or (200 if is_hockey else 20),
        eval_opponents=list(opponents),
        threads=useful_threads(settings_of(config), count) if where == "cpu" else None,
        initial_agent=initial,
        env_is_given=not isinstance(env, str),
    )
    with folder.held():
        try:
            run = _begun(structs.replace(plan, adopted=folder.adopt(named)), folder, env)
        except BaseException:
            folder.discard()
            raise
        return _trained(run, None, verbose, displays)


def _with_task(config: Config, env: EnvSource) -> Config:
    """The config with what is trained on in it, which it then must fit."""
    name = name_of(env)
    if name == HOCKEY != env:
        raise ConfigError(f"env: {HOCKEY} is trained on as it is registered, by its name")
    task = structs.replace(config.task, id=name)
    return checked(structs.replace(config, task=task))


def _begun(plan: RunPlan, folder: RunFolder, env: EnvSource) -> Run:
    run = Run(plan, folder, env)
    try:
        run.begin()
        folder.write_plan(plan)
    except BaseException:
        run.close()
        raise
    return run


def _whole(name: str, value: Any, least: int = 1) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least else "an integer of at least 0"
        raise ValueError(f"{name} must be {kind}, got {value!r}")
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
    """Go on with a run that was interrupted or killed, from its newest checkpoint.

    On the CPU, with kernels as environments, what comes of it is what would have come of it without
    the interruption, bit for bit. Python environments begin new episodes.

    Args:
        folder: Of the run.
        checkpoint: The name of another checkpoint than the newest.
        verbose: Whether anything is shown.
        device: Another one than the run was on; it then draws other numbers.
        env: What the run was given as ``env``, if it was not a name or a URL.
        displays: As for :func:`train_single_run`.

    Returns:
        The same as :func:`train_single_run`.

    Raises:
        CheckpointError: The checkpoint is damaged, or there is no such run.
        RunInUseError: It is going on.
    """
    there = RunFolder(folder)
    plan = there.read_plan()
    env = trained_env(plan, env)
    where = choose_device(plan.device if device is None else device)
    with there.held():
        there.tidy()
        run = Run(structs.replace(plan, device=where), there, env)
        try:
            logs = run.restore(checkpoint)
            if logs is None:
                there.forget_logs()
        except BaseException:
            run.close()
            raise
        return _trained(run, logs, verbose, displays)


def _trained(
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
            cut_to=logs,
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
                    _filmed(run, reporter)
            # Evaluations have a table of their own, made of the logs.
            figures = {name: told for name, told in result.items() if not isinstance(told, list)}
            reporter.finish(figures, run.config())
            if not is_over:
                raise KeyboardInterrupt(f"saved; go on with: shoal resume {folder.path}")
    finally:
        run.close()
    return result


def _filmed(run: Run, reporter: Reporter) -> None:
    folder, config = run.folder, run.plan.config
    opponent = run.plan.eval_opponents[-1]
    try:
        film(
            load_agent(folder.best_agent, run.plan.device),
            folder.video,
            run.env,
            arguments=config.task.arguments,
            opponent=str(folder.adopted_file(opponent, run.plan)),
            episodes=config.training.video_episodes,
            keep_mode=run.plan.keeps_puck,
        )
    except Exception as error:  # whatever the environment raises: the training is done
        warnings.warn(f"there is no video: {error!r}", RuntimeWarning, stacklevel=2)
    else:
        reporter.note(f"video: {folder.video}")
