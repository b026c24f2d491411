"""Each agent solves a simple task within seconds."""

import numpy as np
import pytest

from shoal.train import load_agent, play_episodes
from shoal.train._config import parse_config
from shoal.train._reporting import reporter
from tests.train.runs.small_runs import train_run


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


def make(agent, task, steps, settings, **training):
    return parse_config(
        {
            "task": {"id": task},
            "curriculum": {"phases": [{"name": "only", "steps": steps}]},
            "agent": {"type": agent, "hyperparameters": settings},
            "training": {"video_episodes": 0, "eval_num_games": 20} | training,
        }
    )


POLE = {
    "hidden_dim": [64, 64],
    "learning_rate": 5e-4,
    "batch_size": 64,
    "buffer_size": 20_000,
    "epsilon_final": 0.02,
    "epsilon_steps": 5_000,
    "n_step": 3,
    "tau": 0.01,
}
PENDULUM = {"hidden_dim": [64, 64], "learning_rate": 2e-3, "batch_size": 128, "gamma": 0.98}
CASES = {
    "DDDQN": (
        make("DDDQN", "CartPole-v1", 20_000, POLE, updates_per_step=0.5, stop_at_reward=400,
             eval_freq_steps=2_000, warmup_steps=500),
        8,
        100,
    ),
    "DDDQN prioritized": (
        make("DDDQN", "CartPole-v1", 20_000, POLE | {"prioritized": True}, updates_per_step=0.5,
             stop_at_reward=400, eval_freq_steps=2_000, warmup_steps=500),
        8,
        100,
    ),
    "PPO": (
        make("PPO", "CartPole-v1", 80_000, {"hidden_dim": [64, 64], "rollout_steps": 32,
             "learning_rate": 1e-3, "activation": "tanh"}, stop_at_reward=400,
             eval_freq_steps=8_000),
        32,
        200,
    ),
    "SAC": (
        make("SAC", "Pendulum-v1", 14_000, PENDULUM, updates_per_step=0.3, stop_at_reward=-200,
             eval_freq_steps=2_000, warmup_steps=1000),
        8,
        -400,
    ),
    "PPO continuous": (
        make("PPO", "Pendulum-v1", 200_000, {"hidden_dim": [64, 64], "rollout_steps": 64,
             "learning_rate": 1e-3, "activation": "tanh", "gamma": 0.9, "epochs": 10,
             "normalize_observations": False}, stop_at_reward=-300, eval_freq_steps=20_000,
             reward_scale=0.1),
        32,
        -600,
    ),
}  # fmt: skip
"""Config, number of environments and required mean return. An untrained agent reaches 10 to 20 on
CartPole, and about -1,200 on Pendulum."""


def check_learns(name, folder, seed):
    config, num_envs, required = CASES[name]
    result = train_run(config, folder, num_envs=num_envs, seed=seed)
    best = load_agent(folder / "run")
    returns, _ = play_episodes(best, config.task.id, 50, seed=1_000)
    print(name, seed, result["total_steps"], result["seconds"], np.mean(returns))
    assert np.mean(returns) > required


@pytest.mark.parametrize(
    "name", ["DDDQN", "PPO", "PPO continuous", pytest.param("SAC", marks=pytest.mark.slow)]
)
def test_agent_learns(tmp_path, name):
    check_learns(name, tmp_path, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_agent_learns_with_other_seeds(tmp_path, name, seed):
    check_learns(name, tmp_path, seed)
