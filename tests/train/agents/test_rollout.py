"""Advantages, next to a plain loop over the steps of each slot."""

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


def plain_advantages(rewards, values, later, terminated, truncated, gamma, decay):
    """Generalised advantages of one slot, one step after the other, as they are defined.

    Args:
        rewards: Of each step.
        values: Of the state before each step.
        later: Of the state that each step led to; where an episode ended, of its last one.
        terminated: Whether the episode is over for good.
        truncated: Whether it was cut short.
        gamma: The discount of a step.
        decay: How much is carried on from one step to the one before.
    """
    advantages = [0.0] * len(rewards)
    for begin in range(len(rewards)):
        weight = 1.0
        for step in range(begin, len(rewards)):
            worth = 0.0 if terminated[step] else later[step]
            advantages[begin] += weight * (rewards[step] + gamma * worth - values[step])
            if terminated[step] or truncated[step]:
                break
            weight *= gamma * decay
    return advantages


@settings(max_examples=60, deadline=None)
@given(
    steps=st.integers(1, 9),
    slots=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.5, 0.99, 1.0]),
    decay=st.sampled_from([0.0, 0.7, 0.95, 1.0]),
    ends=st.sampled_from([0.0, 0.2, 0.7]),
    seed=st.integers(0, 2**31),
)
def test_advantages_are_those_of_a_plain_loop(steps, slots, gamma, decay, ends, seed):
    """Through the agent: what is truncated is worth what its last state is, what terminated not."""
    small = {"hidden_dim": [4], "rollout_steps": steps, "gamma": gamma, "gae_lambda": decay}
    agent = make_agent("PPO", AgentSpaces(2, spaces.Discrete(3)), small, num_slots=slots)
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(slots, 2)).astype(np.float32)
    columns = {name: np.zeros((steps, slots)) for name in Step._fields[2:]}
    values, later = np.zeros((steps, slots)), np.zeros((steps, slots))
    for number in range(steps):
        values[number] = agent.evaluate(seen)
        actions = agent.explore(seen)
        after = rng.normal(size=(slots, 2)).astype(np.float32)
        step = Step(
            seen,
            actions,
            rng.normal(0, 3, slots),
            after,
            rng.random(slots) < ends,
            rng.random(slots) < ends,
        )
        agent.remember(step)
        later[number] = agent.evaluate(after)
        for name in ("rewards", "terminated", "truncated"):
            columns[name][number] = getattr(step, name)
        ended = step.terminated | step.truncated
        seen = np.where(ended[:, None], rng.normal(size=(slots, 2)), after).astype(np.float32)
    assert agent.rollout.is_full
    agent.rollout.values[-1].copy_(torch.as_tensor(later[-1]))
    agent.rollout.compute_advantages(gamma, decay)
    for slot in range(slots):
        expected = plain_advantages(
            columns["rewards"][:, slot],
            values[:, slot],
            later[:, slot],
            columns["terminated"][:, slot],
            columns["truncated"][:, slot],
            gamma,
            decay,
        )
        found = agent.rollout.advantages[:, slot].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    taken = agent.rollout.take(torch.arange(steps * slots))
    expected = agent.rollout.advantages.numpy().ravel() + values.ravel()
    np.testing.assert_allclose(taken.returns, expected, rtol=1e-4, atol=1e-4)


def test_a_last_state_is_asked_for_its_value_when_the_rollout_is_full(monkeypatch):
    """In the middle of an episode the rollout ends, but the episode goes on."""
    settings_ = {"hidden_dim": [4], "rollout_steps": 2, "gamma": 0.9, "gae_lambda": 1.0}
    agent = make_agent("PPO", AgentSpaces(2, spaces.Discrete(3)), settings_, num_slots=1)
    no, last = np.array([False]), np.array([[3.0, -1.0]], np.float32)
    seen = np.ones((1, 2), np.float32)
    before = agent.evaluate(np.concatenate([seen, last]))
    for after in (seen, last):
        actions = agent.explore(seen)
        agent.remember(Step(seen, actions, np.array([1.0]), after, no, no))
    kept = []
    monkeypatch.setattr(agent, "_run_update", lambda: kept.append(agent.rollout.advantages.clone()))
    agent.learn(0)
    value, worth = before.tolist()
    expected = [1.0 + 0.9 * (1.0 + 0.9 * worth) - value, 1.0 + 0.9 * worth - value]
    assert kept[0][:, 0].tolist() == pytest.approx(expected, rel=1e-4)


def filled(rollout, steps, slots, width, rng):
    for _ in range(steps):
        rollout.begin(
            torch.tensor(rng.normal(size=(slots, width))),
            torch.tensor(rng.integers(0, 4, slots)),
            torch.tensor(rng.normal(size=slots)),
            torch.tensor(rng.normal(size=slots)),
        )
        rollout.end(rng.normal(size=slots).astype(np.float32), rng.random(slots) < 0.2)


def test_steps_are_taken_by_their_places():
    rollout, rng = Rollout(5, 3, 2, (), CPU), np.random.default_rng(0)
    filled(rollout, 5, 3, 2, rng)
    rollout.values[-1].zero_()
    rollout.compute_advantages(0.9, 0.9)
    places = torch.tensor([14, 0, 7, 7])
    taken = rollout.take(places)
    for row, place in enumerate(places.tolist()):
        step, slot = divmod(place, 3)
        assert torch.equal(taken.observations[row], rollout.observations[step, slot])
        assert taken.actions[row] == rollout.actions[step, slot]
        assert taken.densities[row] == rollout.densities[step, slot]
        assert taken.values[row] == rollout.values[step, slot]
        assert taken.advantages[row] == rollout.advantages[step, slot]
        assert taken.returns[row] == rollout.values[step, slot] + rollout.advantages[step, slot]


@pytest.mark.parametrize("steps", [0, 1, 4, 5])
def test_a_rollout_is_restored_in_the_middle(steps):
    rng = np.random.default_rng(0)
    one, other = Rollout(5, 3, 2, (), CPU), Rollout(5, 3, 2, (), CPU)
    filled(one, steps, 3, 2, rng)
    filled(other, 2, 3, 2, np.random.default_rng(1))
    other.restore(one.state())
    assert (other.filled, other.is_full) == (steps, steps == 5)
    assert same(one.state(), other.state())
    one.clear()
    assert one.filled == 0
    assert other.filled == steps


def test_a_state_is_not_written_to_afterwards():
    one, rng = Rollout(5, 3, 2, (), CPU), np.random.default_rng(0)
    filled(one, 3, 3, 2, rng)
    state = one.state()
    before = {name: value if name == "filled" else value.clone() for name, value in state.items()}
    one.clear()
    filled(one, 5, 3, 2, rng)
    assert same(state, before)
