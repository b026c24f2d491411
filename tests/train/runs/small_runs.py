"""Helpers that create small runs and read their output."""

import csv
from pathlib import Path

import numpy as np
import torch

from shoal.train import train_single_run
from shoal.train._agents.base import read_agent
from shoal.train._config import parse_config
from shoal.train._files import read_file

HOCKEY = "shoal/Hockey-v0"

SMALL = {
    "DDDQN": {"hidden_dim": [8], "batch_size": 8, "buffer_size": 5000, "epsilon_steps": 200},
    "SAC": {"hidden_dim": [8], "batch_size": 8, "buffer_size": 5000},
    "PPO": {"hidden_dim": [8], "rollout_steps": 8, "epochs": 2, "minibatches": 2},
}
"""Hyperparameters of small networks, for speed."""


def make_config(
    agent="DDDQN", task="CartPole-v1", phases=None, *, steps=400, settings=None, **more
):
    """Create the config of a small run.

    Args:
        agent: The kind of agent.
        task: The id of the environment.
        phases: The phases. Defaults to one phase.
        steps: Number of steps of the default phase.
        settings: Hyperparameters that override those of a small network.
        more: Settings of ``training``, or ``league``, or ``arguments`` of the environment.
    """
    league, arguments = more.pop("league", None), more.pop("arguments", {})
    training = {"video_episodes": 0, "eval_num_games": 2}
    if agent != "PPO":
        training["warmup_steps"] = 50
    training |= more
    raw = {
        "task": {"id": task, "arguments": arguments},
        "curriculum": {"phases": phases or [{"name": "only", "steps": steps}]},
        "agent": {"type": agent, "hyperparameters": SMALL[agent] | (settings or {})},
        "training": training,
    }
    return parse_config(raw | ({} if league is None else {"league": league}))


def train_run(config, folder, name="run", *, num_envs=2, seed=3, **more):
    """Train a run and return its result."""
    options = {"verbose": False, "device": "cpu", "num_envs": num_envs, "seed": seed} | more
    return train_single_run(config, folder, name, **options)


def network(path):
    """Return the parameters in an agent file or checkpoint by name."""
    return {name: value.numpy() for name, value in read_agent(path)["network"].items()}


def checkpoints(folder):
    """Return the checkpoint files of a run, oldest first."""
    return sorted((Path(folder) / "checkpoints").glob("*.checkpoint"))


def last_state(folder):
    """Return the content of a run's newest checkpoint without parts that depend on time."""
    state = read_file(checkpoints(folder)[-1])
    del state["seconds"], state["logs"]
    for trainee in state["trainees"]:
        # Averages since the last report, which depends on time.
        del trainee["agent"]["totals"], trainee["agent"]["updates_in_totals"]
    return state


def differences(first, second, path=""):
    """List the positions at which two nested structures are not bitwise equal."""
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            return [f"{path}: {first.keys() ^ second.keys()}"]
        parts = [differences(first[key], second[key], f"{path}.{key}") for key in first]
        return [line for part in parts for line in part]
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        pairs = enumerate(zip(first, second, strict=True))
        parts = [differences(*pair, f"{path}[{number}]") for number, pair in pairs]
        return [line for part in parts for line in part]
    if isinstance(first, torch.Tensor):
        first, second = first.numpy(), second.numpy()
    if isinstance(first, np.ndarray):
        same = first.dtype == second.dtype and first.tobytes() == second.tobytes()
    else:
        same = first == second or (first != first and second != second)
    return [] if same else [f"{path}: {first} and {second}"[:200]]


def episodes(folder):
    """Return the rows of a run's episode log as dicts of strings."""
    with (Path(folder) / "logs" / "episodes.csv").open() as file:
        return list(csv.DictReader(file))
