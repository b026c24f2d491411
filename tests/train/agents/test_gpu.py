"""On a GPU, where there is one: what is recorded does what is written, and goes on being that."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

KINDS = {
    "DDDQN": {"batch_size": 32, "epsilon_steps": 100},
    "prioritized": {"batch_size": 32, "prioritized": True, "n_step": 3},
    "SAC": {"batch_size": 32, "noise": "pink", "noise_period": 16},
    "PPO": {"rollout_steps": 8, "minibatches": 2, "anneal": True},
}
SLOTS = 4


def made(name, compilation, seed=0):
    kind = "DDDQN" if name == "prioritized" else name
    space = spaces.Discrete(3) if kind == "DDDQN" else spaces.Box(-1.0, 1.0, (2,))
    settings = KINDS[name] | {"hidden_dim": [32], "compile": compilation}
    return make_agent(
        kind, AgentSpaces(5, space), settings, num_slots=SLOTS, device="cuda", seed=seed
    )


def lived(agent, steps, seed):
    """An agent after so many steps; updates are made in each, and actions are looked at."""
    rng = np.random.default_rng(seed)
    done = []
    for number in range(steps):
        seen, after = rng.standard_normal((2, SLOTS, 5)).astype(np.float32)
        if agent.is_on_policy:
            agent.learn(0)
        done.append(agent.explore(seen))
        terminated, truncated = rng.random((2, SLOTS)) < 0.1
        rewards = rng.standard_normal(SLOTS)
        agent.remember(Step(seen, done[-1], rewards, after, terminated, truncated & ~terminated))
        agent.progressed(number * SLOTS, number / steps)
        if not agent.is_on_policy:
            agent.learn(1)
    return np.concatenate(done)


def parameters(agent):
    return torch.cat([part.flatten() for part in agent.network.parameters()])


@pytest.mark.parametrize("name", KINDS)
def test_what_is_recorded_is_what_is_written(name):
    """Through all that changes meanwhile: epsilon, the correction of priorities, the rate."""
    written, recorded = made(name, "none"), made(name, "graph")
    np.testing.assert_array_equal(lived(written, 80, seed=1), lived(recorded, 80, seed=1))
    assert torch.equal(parameters(written), parameters(recorded))


@pytest.mark.parametrize("name", KINDS)
def test_what_was_saved_goes_on_alike(name):
    first, second = made(name, "graph"), made(name, "graph", seed=9)
    lived(first, 60, seed=1)
    lived(second, 30, seed=2)  # has recorded already when it is restored
    second.restore(first.state())
    np.testing.assert_array_equal(lived(first, 40, seed=3), lived(second, 40, seed=3))
    assert torch.equal(parameters(first), parameters(second))
