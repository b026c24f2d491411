"""Updates recorded as CUDA graphs equal eager updates, also after a restore. Requires a GPU."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a GPU")

KINDS = {
    "DDDQN": {"batch_size": 32, "epsilon_steps": 100},
    "prioritized": {"batch_size": 32, "prioritized": True, "n_step": 3},
    "SAC": {"batch_size": 32, "noise": "pink", "noise_period": 16},
    "PPO": {"rollout_steps": 8, "minibatches": 2, "anneal": True},
}
SLOTS = 4


def make_on_gpu(name, compilation, seed=0):
    kind = "DDDQN" if name == "prioritized" else name
    space = spaces.Discrete(3) if kind == "DDDQN" else spaces.Box(-1.0, 1.0, (2,))
    settings = KINDS[name] | {"hidden_dim": [32], "compile": compilation}
    return make_agent(
        kind, AgentSpaces(5, space), settings, num_slots=SLOTS, device="cuda", seed=seed
    )


def train(agent, steps, seed):
    """Train for a number of steps with an update in each, and return the actions."""
    rng = np.random.default_rng(seed)
    all_actions = []
    for number in range(steps):
        before, after = rng.standard_normal((2, SLOTS, 5)).astype(np.float32)
        if agent.is_on_policy:
            agent.learn(0)
        all_actions.append(agent.explore(before))
        terminated, truncated = rng.random((2, SLOTS)) < 0.1
        rewards = rng.standard_normal(SLOTS)
        truncated &= ~terminated
        agent.remember(Step(before, all_actions[-1], rewards, after, terminated, truncated))
        agent.progressed(number * SLOTS, number / steps)
        if not agent.is_on_policy:
            agent.learn(1)
    return np.concatenate(all_actions)


def parameters(agent):
    return torch.cat([part.flatten() for part in agent.network.parameters()])


@pytest.mark.parametrize("name", KINDS)
def test_recorded_updates_equal_eager_updates(name):
    """Also while epsilon, the priority beta and the learning rate change."""
    eager, recorded = make_on_gpu(name, "none"), make_on_gpu(name, "graph")
    np.testing.assert_array_equal(train(eager, 80, seed=1), train(recorded, 80, seed=1))
    assert torch.equal(parameters(eager), parameters(recorded))


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_agent_continues_like_the_saved_one(name):
    first, second = make_on_gpu(name, "graph"), make_on_gpu(name, "graph", seed=9)
    train(first, 60, seed=1)
    train(second, 30, seed=2)  # its graphs are recorded before the restore
    second.restore(first.state())
    np.testing.assert_array_equal(train(first, 40, seed=3), train(second, 40, seed=3))
    assert torch.equal(parameters(first), parameters(second))
