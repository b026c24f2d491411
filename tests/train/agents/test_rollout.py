"""The rollout buffer and its advantages, compared with a loop over the steps of each slot."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from shoal.train._agents.rollout import Rollout
from tests.train.agents.making import same

CPU = torch.device("cpu")


def reference_advantages(rewards, values, next_values, terminated, truncated, gamma, gae_lambda):
    """Return the generalized advantage estimates of one slot, computed by their definition.

    Args:
        rewards: The reward of each step.
        values: The value of the state before each step.
        next_values: The value of the state after each step; the final one where an episode ended.
        terminated: Whether the step terminated the episode.
        truncated: Whether the step truncated the episode.
        gamma: The discount factor.
        gae_lambda: The decay of advantage estimation.
    """
    advantages = [0.0] * len(rewards)
    for start in range(len(rewards)):
        weight = 1.0
        for step in range(start, len(rewards)):
            next_value = 0.0 if terminated[step] else next_values[step]
            delta = rewards[step] + gamma * next_value - values[step]
            advantages[start] += weight * delta
            if terminated[step] or truncated[step]:
                break
            weight *= gamma * gae_lambda
    return advantages


@settings(max_examples=60, deadline=None)
@given(
    steps=st.integers(1, 9),
    slots=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    gae_lambda=st.sampled_from([0.0, 0.7, 0.95, 1.0]),
    end_probability=st.sampled_from([0.0, 0.2, 0.7]),
    seed=st.integers(0, 2**31),
)
def test_advantages_equal_the_reference(steps, slots, gamma, gae_lambda, end_probability, seed):
    """Values are bootstrapped at a truncation, but not at a termination."""
    small = {"hidden_dim": [4], "rollout_steps": steps, "gamma": gamma, "gae_lambda": gae_lambda}
    agent = make_agent("PPO", AgentSpaces(2, spaces.Discrete(3)), small, num_slots=slots)
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(slots, 2)).astype(np.float32)
    columns = {name: np.zeros((steps, slots)) for name in Step._fields[2:]}
    values, next_values = np.zeros((steps, slots)), np.zeros((steps, slots))
    for number in range(steps):
        values[number] = agent.evaluate(states)
        actions = agent.explore(states)
        after = rng.normal(size=(slots, 2)).astype(np.float32)
        step = Step(
            states,
            actions,
            rng.normal(0, 3, slots),
            after,
            rng.random(slots) < end_probability,
            rng.random(slots) < end_probability,
        )
        agent.remember(step)
        next_values[number] = agent.evaluate(after)
        for name in ("rewards", "terminated", "truncated"):
            columns[name][number] = getattr(step, name)
        ended = step.terminated | step.truncated
        reset = rng.normal(size=(slots, 2))
        states = np.where(ended[:, None], reset, after).astype(np.float32)
    assert agent.rollout.is_full
    agent.rollout.values[-1].copy_(torch.as_tensor(next_values[-1]))
    agent.rollout.compute_advantages(gamma, gae_lambda)
    for slot in range(slots):
        expected = reference_advantages(
            columns["rewards"][:, slot],
            values[:, slot],
            next_values[:, slot],
            columns["terminated"][:, slot],
            columns["truncated"][:, slot],
            gamma,
            gae_lambda,
        )
        advantages = agent.rollout.advantages[:, slot].numpy()
        np.testing.assert_allclose(advantages, expected, rtol=1e-4, atol=1e-4)
    batch = agent.rollout.take(torch.arange(steps * slots))
    expected = agent.rollout.advantages.numpy().ravel() + values.ravel()
    np.testing.assert_allclose(batch.returns, expected, rtol=1e-4, atol=1e-4)


def test_the_value_after_the_last_step_of_a_rollout_is_bootstrapped(monkeypatch):
    """The rollout ends in the middle of an episode."""
    settings_ = {"hidden_dim": [4], "rollout_steps": 2, "gamma": 0.9, "gae_lambda": 1.0}
    agent = make_agent("PPO", AgentSpaces(2, spaces.Discrete(3)), settings_, num_slots=1)
    no, last = np.array([False]), np.array([[3.0, -1.0]], np.float32)
    state = np.ones((1, 2), np.float32)
    values = agent.evaluate(np.concatenate([state, last]))
    for after in (state, last):
        actions = agent.explore(state)
        agent.remember(Step(state, actions, np.array([1.0]), after, no, no))
    used = []
    monkeypatch.setattr(agent, "_run_update", lambda: used.append(agent.rollout.advantages.clone()))
    agent.learn(0)
    value, last_value = values.tolist()
    expected = [1.0 + 0.9 * (1.0 + 0.9 * last_value) - value, 1.0 + 0.9 * last_value - value]
    assert used[0][:, 0].tolist() == pytest.approx(expected, rel=1e-4)


def fill(rollout, steps, slots, width, rng):
    for _ in range(steps):
        rollout.begin_step(
            torch.tensor(rng.normal(size=(slots, width))),
            torch.tensor(rng.integers(0, 4, slots)),
            torch.tensor(rng.normal(size=slots)),
            torch.tensor(rng.normal(size=slots)),
        )
        rollout.end_step(rng.normal(size=slots).astype(np.float32), rng.random(slots) < 0.2)


def test_steps_are_gathered_by_index():
    rollout, rng = Rollout(5, 3, 2, (), CPU), np.random.default_rng(0)
    fill(rollout, 5, 3, 2, rng)
    rollout.values[-1].zero_()
    rollout.compute_advantages(0.9, 0.9)
    indices = torch.tensor([14, 0, 7, 7])
    batch = rollout.take(indices)
    for row, index in enumerate(indices.tolist()):
        step, slot = divmod(index, 3)
        assert torch.equal(batch.observations[row], rollout.observations[step, slot])
        assert batch.actions[row] == rollout.actions[step, slot]
        assert batch.log_probs[row] == rollout.log_probs[step, slot]
        assert batch.values[row] == rollout.values[step, slot]
        assert batch.advantages[row] == rollout.advantages[step, slot]
        assert batch.returns[row] == rollout.values[step, slot] + rollout.advantages[step, slot]


@pytest.mark.parametrize("steps", [0, 1, 4, 5])
def test_a_partial_rollout_is_restored(steps):
    rng = np.random.default_rng(0)
    one, other = Rollout(5, 3, 2, (), CPU), Rollout(5, 3, 2, (), CPU)
    fill(one, steps, 3, 2, rng)
    fill(other, 2, 3, 2, np.random.default_rng(1))
    other.restore(one.state())
    assert (other.filled, other.is_full) == (steps, steps == 5)
    assert same(one.state(), other.state())
    one.clear()
    assert one.filled == 0
    assert other.filled == steps


def test_a_returned_state_is_not_overwritten_later():
    one, rng = Rollout(5, 3, 2, (), CPU), np.random.default_rng(0)
    fill(one, 3, 3, 2, rng)
    state = one.state()
    before = {name: value if name == "filled" else value.clone() for name, value in state.items()}
    one.clear()
    fill(one, 5, 3, 2, rng)
    assert same(state, before)
