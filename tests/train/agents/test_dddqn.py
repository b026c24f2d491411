"""What DDDQN learns from a batch, computed once more by hand."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from tests.train.agents.plain import Recorder, all_close, gradients, plain_mlp

SCALE = [1.0, 2.0, 0.5]
SLOTS, STEPS = 4, 6


def made(**settings):
    spaces_ = AgentSpaces(3, spaces.Discrete(4), observation_scale=SCALE)
    small = {"hidden_dim": [8, 5], "batch_size": 7, "buffer_size": 100, "gamma": 0.9}
    agent = make_agent("DDDQN", spaces_, small | settings, num_slots=SLOTS, seed=3)
    other = torch.randn(len(agent._targets), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        agent._targets.add_(other * 0.1)  # so that it matters which network is asked
    return agent


def filled(agent, seed=0):
    """Remembers some steps; as they were."""
    rng = np.random.default_rng(seed)
    found = []
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
        found.append(step)
    return Step(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def values(module, settings, observations):
    layers = list(module.parameters())
    out = plain_mlp(layers, settings.activation)
    given = torch.as_tensor(observations / np.array(SCALE), dtype=torch.float64)

    def found():
        last = out(given)
        if not settings.dueling:
            return last
        return last[:, :1] + last[:, 1:] - last[:, 1:].mean(1, keepdim=True)

    return out, found()


def expected_loss(agent, step, places, weights=None):
    """The loss of these transitions, and what its gradient is taken of."""
    settings = agent.settings
    step = Step(*(part[places] for part in step))
    rows = np.arange(len(places))
    _, judged = values(agent.values, settings, step.next_observations)
    _, later = values(agent._target, settings, step.next_observations)
    chosen = (judged if settings.double else later).argmax(1).numpy()
    later = later.detach().numpy()[rows, chosen]
    wanted = step.rewards + settings.gamma * later * np.where(step.terminated, 0.0, 1.0)
    online, now = values(agent.values, settings, step.observations)
    off = now[rows, step.actions] - torch.as_tensor(wanted)
    huber = torch.where(off.abs() < 1, 0.5 * off**2, off.abs() - 0.5)
    if weights is not None:
        huber = huber * torch.as_tensor(weights)
    return online, huber.mean(), off.detach().numpy()


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_targets_are_computed_as_by_hand(double, dueling, activation, monkeypatch):
    agent = made(double=double, dueling=dueling, activation=activation)
    step = filled(agent)
    places = np.array([0, 5, 5, 11, 17, 20, 23])
    monkeypatch.setattr(agent.memory, "draw", lambda *_: torch.as_tensor(places))
    monkeypatch.setattr(agent, "_follow", lambda: None)
    recorder = Recorder(monkeypatch, agent._value_learner)
    agent.learn(1)
    online, loss, _ = expected_loss(agent, step, places)
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-5)]
    assert all_close(recorder.gradients[0], gradients(loss, online))


def test_double_targets_are_judged_by_the_network_that_learns():
    """The two must differ somewhere, or the test above shows nothing."""
    agent = made()
    step = filled(agent)
    _, judged = values(agent.values, agent.settings, step.next_observations)
    _, later = values(agent._target, agent.settings, step.next_observations)
    assert bool((judged.argmax(1) != later.argmax(1)).any())


def test_prioritised_losses_are_weighted(monkeypatch):
    agent = made(prioritized=True, priority_beta=0.5, priority_alpha=0.7)
    step = filled(agent)
    places = np.array([2, 3, 5, 7, 11, 13, 17])
    likely = torch.tensor([0.1, 0.02, 0.02, 0.3, 0.05, 0.01, 0.2], dtype=torch.float64)
    updated = []
    monkeypatch.setattr(agent._priorities, "draw", lambda *_: (torch.as_tensor(places), likely))
    monkeypatch.setattr(agent._priorities, "update", lambda *given: updated.append(given))
    monkeypatch.setattr(agent, "_follow", lambda: None)
    recorder = Recorder(monkeypatch, agent._value_learner)
    agent.learn(1)
    weights = (len(step.rewards) * likely.numpy()) ** -0.5
    _, loss, off = expected_loss(agent, step, places, weights / weights.max())
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-5)]
    assert updated[0][0].tolist() == places.tolist()
    np.testing.assert_allclose(updated[0][1].abs().numpy(), np.abs(off), rtol=1e-4, atol=1e-5)


def test_beta_grows_to_one(monkeypatch):
    agent = made(prioritized=True, priority_beta=0.4, priority_beta_updates=10)
    filled(agent)
    found = [float(agent._beta)]
    for _ in range(12):
        agent.learn(1)
        found.append(float(agent._beta))
    expected = [min(1.0, 0.4 + 0.06 * number) for number in range(13)]
    assert found == pytest.approx(expected)


def test_what_was_far_off_is_drawn_more_often():
    agent = made(prioritized=True, priority_alpha=1.0, batch_size=16, learning_rate=1e-9)
    rng = np.random.default_rng(0)
    for number in range(8):
        rewards = np.full(SLOTS, 50.0 if number == 3 else 0.0)
        ended = np.ones(SLOTS, bool)
        seen = rng.normal(size=(SLOTS, 3)).astype(np.float32)
        agent.remember(Step(seen, np.zeros(SLOTS, int), rewards, seen, ended, ~ended))
    assert agent.learn(40) == 40
    places, _ = agent._priorities.draw(1000, agent.generator)
    drawn = np.bincount(places.numpy() // SLOTS, minlength=8) / 1000
    assert drawn[3] > 0.8


@pytest.mark.parametrize(("often", "tau"), [(1, 0.1), (1, 1.0), (3, 0.25)])
def test_the_target_follows(often, tau):
    agent = made(target_update_freq=often, tau=tau)
    filled(agent)
    target = agent._targets.clone()
    for number in range(1, 8):
        agent.learn(1)
        if number % often == 0:
            target += tau * (agent._value_learner.vector - target)
        torch.testing.assert_close(agent._targets, target, rtol=1e-5, atol=1e-7)


def test_several_steps_count_by_their_rewards(monkeypatch):
    """Three steps of one slot, by hand: 1 + 0.9 * 2 + 0.81 * 4, then what the target says."""
    agent = make_agent(
        "DDDQN",
        AgentSpaces(1, spaces.Discrete(2)),
        {"hidden_dim": [3], "n_step": 3, "gamma": 0.9, "batch_size": 1, "buffer_size": 9},
    )
    no = np.array([False])
    for number, reward in enumerate([1.0, 2.0, 4.0]):
        seen = np.array([[float(number)]], np.float32)
        agent.remember(Step(seen, np.array([number % 2]), np.array([reward]), seen + 1, no, no))
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


def test_it_learns_what_is_worth_more():
    """A bandit of four arms whose best arm depends on what is seen."""
    agent = make_agent(
        "DDDQN",
        AgentSpaces(4, spaces.Discrete(4)),
        {"hidden_dim": [16], "learning_rate": 0.01, "batch_size": 32, "buffer_size": 1000},
        num_slots=16,
    )
    rng, ended = np.random.default_rng(0), np.ones(16, bool)
    for _ in range(60):
        seen = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 16)]
        actions = agent.random_actions()
        rewards = (actions == 3 - seen.argmax(1)).astype(float)
        agent.remember(Step(seen, actions, rewards, seen, ended, ~ended))
        agent.learn(3)
    assert agent.act_batch(np.eye(4), deterministic=True).tolist() == [3, 2, 1, 0]
    assert agent.evaluate(np.eye(4)) == pytest.approx(np.ones(4), abs=0.2)
