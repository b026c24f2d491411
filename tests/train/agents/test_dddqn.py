"""The losses and targets of DDDQN, compared with a reference implementation."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from tests.train.agents.reference import Recorder, all_close, gradients, reference_mlp

SCALE = [1.0, 2.0, 0.5]
SLOTS, STEPS = 4, 6


def make_dddqn(**settings):
    spaces_ = AgentSpaces(3, spaces.Discrete(4), observation_scale=SCALE)
    small = {"hidden_dim": [8, 5], "batch_size": 7, "buffer_size": 100, "gamma": 0.9}
    agent = make_agent("DDDQN", spaces_, small | settings, num_slots=SLOTS, seed=3)
    noise = torch.randn(len(agent._target_vector), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        agent._target_vector.add_(noise * 0.1)  # the networks must differ for the tests
    return agent


def fill(agent, seed=0):
    """Add random steps to the replay buffer, and return them."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(STEPS):
        step = Step(
            rng.normal(size=(SLOTS, 3)).astype(np.float32),
            rng.integers(0, 4, SLOTS),
            rng.normal(0, 3, SLOTS),
            rng.normal(size=(SLOTS, 3)).astype(np.float32),
            rng.random(SLOTS) < 0.3,
            rng.random(SLOTS) < 0.3,
        )
        agent.remember(step)
        steps.append(step)
    return Step(*(np.concatenate(parts) for parts in zip(*steps, strict=True)))


def reference_q_values(module, settings, observations):
    """Return the reference network of a Q-network, and its Q-values."""
    network = reference_mlp(list(module.parameters()), settings.activation)
    last = network(torch.as_tensor(observations / np.array(SCALE), dtype=torch.float64))
    if not settings.dueling:
        return network, last
    return network, last[:, :1] + last[:, 1:] - last[:, 1:].mean(1, keepdim=True)


def expected_loss(agent, step, indices, weights=None):
    """Return the reference network, the loss of these transitions, and their TD errors."""
    settings = agent.settings
    step = Step(*(part[indices] for part in step))
    rows = np.arange(len(indices))
    _, online_q = reference_q_values(agent.q_network, settings, step.next_observations)
    _, target_q = reference_q_values(agent.target_network, settings, step.next_observations)
    chosen = (online_q if settings.double else target_q).argmax(1).numpy()
    next_values = target_q.detach().numpy()[rows, chosen]
    targets = step.rewards + settings.gamma * next_values * np.where(step.terminated, 0.0, 1.0)
    network, q_values = reference_q_values(agent.q_network, settings, step.observations)
    errors = q_values[rows, step.actions] - torch.as_tensor(targets)
    huber = torch.where(errors.abs() < 1, 0.5 * errors**2, errors.abs() - 0.5)
    if weights is not None:
        huber = huber * torch.as_tensor(weights)
    return network, huber.mean(), errors.detach().numpy()


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_loss_and_gradient_equal_the_reference(double, dueling, activation, monkeypatch):
    agent = make_dddqn(double=double, dueling=dueling, activation=activation)
    step = fill(agent)
    indices = np.array([0, 5, 5, 11, 17, 20, 23])
    monkeypatch.setattr(agent.memory, "sample", lambda *_: torch.as_tensor(indices))
    monkeypatch.setattr(agent, "_update_targets", lambda: None)
    recorder = Recorder(monkeypatch, agent._optimizer)
    agent.learn(1)
    network, loss, _ = expected_loss(agent, step, indices)
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-5)]
    assert all_close(recorder.gradients[0], gradients(loss, network))


def test_online_and_target_network_choose_different_actions():
    """Otherwise the test above would not cover ``double``."""
    agent = make_dddqn()
    step = fill(agent)
    _, online_q = reference_q_values(agent.q_network, agent.settings, step.next_observations)
    _, target_q = reference_q_values(agent.target_network, agent.settings, step.next_observations)
    assert bool((online_q.argmax(1) != target_q.argmax(1)).any())


def test_prioritized_losses_have_importance_sampling_weights(monkeypatch):
    agent = make_dddqn(prioritized=True, priority_beta=0.5, priority_alpha=0.7)
    step = fill(agent)
    indices = np.array([2, 3, 5, 7, 11, 13, 17])
    probabilities = torch.tensor([0.1, 0.02, 0.02, 0.3, 0.05, 0.01, 0.2], dtype=torch.float64)
    updated = []
    sampled = torch.as_tensor(indices), probabilities
    monkeypatch.setattr(agent._priorities, "sample", lambda *_: sampled)
    monkeypatch.setattr(agent._priorities, "update", lambda *args: updated.append(args))
    monkeypatch.setattr(agent, "_update_targets", lambda: None)
    recorder = Recorder(monkeypatch, agent._optimizer)
    agent.learn(1)
    weights = (len(step.rewards) * probabilities.numpy()) ** -0.5
    _, loss, errors = expected_loss(agent, step, indices, weights / weights.max())
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-5)]
    assert updated[0][0].tolist() == indices.tolist()
    np.testing.assert_allclose(updated[0][1].abs().numpy(), np.abs(errors), rtol=1e-4, atol=1e-5)


def test_beta_is_annealed_to_one():
    agent = make_dddqn(prioritized=True, priority_beta=0.4, priority_beta_updates=10)
    fill(agent)
    betas = [float(agent._beta)]
    for _ in range(12):
        agent.learn(1)
        betas.append(float(agent._beta))
    expected = [min(1.0, 0.4 + 0.06 * number) for number in range(13)]
    assert betas == pytest.approx(expected)


def test_transitions_with_large_errors_are_sampled_more_often():
    agent = make_dddqn(prioritized=True, priority_alpha=1.0, batch_size=16, learning_rate=1e-9)
    rng = np.random.default_rng(0)
    for number in range(8):
        rewards = np.full(SLOTS, 50.0 if number == 3 else 0.0)
        ended = np.ones(SLOTS, bool)
        states = rng.normal(size=(SLOTS, 3)).astype(np.float32)
        agent.remember(Step(states, np.zeros(SLOTS, int), rewards, states, ended, ~ended))
    assert agent.learn(40) == 40
    indices, _ = agent._priorities.sample(1000, agent.generator)
    shares = np.bincount(indices.numpy() // SLOTS, minlength=8) / 1000
    assert shares[3] > 0.8


@pytest.mark.parametrize(("frequency", "tau"), [(1, 0.1), (1, 1.0), (3, 0.25)])
def test_the_target_network_is_updated_softly(frequency, tau):
    agent = make_dddqn(target_update_freq=frequency, tau=tau)
    fill(agent)
    target = agent._target_vector.clone()
    for number in range(1, 8):
        agent.learn(1)
        if number % frequency == 0:
            target += tau * (agent._optimizer.vector - target)
        torch.testing.assert_close(agent._target_vector, target, rtol=1e-5, atol=1e-7)


def test_n_step_transitions_hold_discounted_rewards():
    """Three steps of one slot: the reward is 1 + 0.9 * 2 + 0.81 * 4, the discount 0.9**3."""
    agent = make_agent(
        "DDDQN",
        AgentSpaces(1, spaces.Discrete(2)),
        {"hidden_dim": [3], "n_step": 3, "gamma": 0.9, "batch_size": 1, "buffer_size": 9},
    )
    no = np.array([False])
    for number, reward in enumerate([1.0, 2.0, 4.0]):
        state = np.array([[float(number)]], np.float32)
        agent.remember(Step(state, np.array([number % 2]), np.array([reward]), state + 1, no, no))
    assert agent.memory.size == 1
    row = {name: part.item() for name, part in agent.memory.take(torch.tensor([0])).items()}
    assert row == pytest.approx(
        {
            "observations": 0.0,
            "actions": 0.0,
            "rewards": 1.0 + 0.9 * 2.0 + 0.81 * 4.0,
            "next_observations": 3.0,
            "discounts": 0.9**3,
        }
    )


def test_it_learns_a_contextual_bandit():
    """The best of four actions depends on the observation."""
    agent = make_agent(
        "DDDQN",
        AgentSpaces(4, spaces.Discrete(4)),
        {"hidden_dim": [16], "learning_rate": 0.01, "batch_size": 32, "buffer_size": 1000},
        num_slots=16,
    )
    rng, ended = np.random.default_rng(0), np.ones(16, bool)
    for _ in range(60):
        states = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 16)]
        actions = agent.random_actions()
        rewards = (actions == 3 - states.argmax(1)).astype(float)
        agent.remember(Step(states, actions, rewards, states, ended, ~ended))
        agent.learn(3)
    assert agent.act_batch(np.eye(4), deterministic=True).tolist() == [3, 2, 1, 0]
    assert agent.evaluate(np.eye(4)) == pytest.approx(np.ones(4), abs=0.2)
