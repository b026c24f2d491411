"""The losses and targets of SAC, compared with a reference implementation."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from tests.train.agents.reference import Recorder, all_close, gradients, reference_mlp

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
CENTER, HALF_RANGE = (LOW + HIGH) / 2, (HIGH - LOW) / 2
SCALE = np.array([1.0, 2.0, 0.5], np.float32)
SLOTS, STEPS, BATCH = 4, 6, 7


def make_sac(**settings):
    box = AgentSpaces(3, spaces.Box(LOW, HIGH), observation_scale=SCALE)
    small = {"hidden_dim": [8, 5], "batch_size": BATCH, "buffer_size": 100, "gamma": 0.9}
    agent = make_agent("SAC", box, small | settings, num_slots=SLOTS, seed=3)
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
            rng.uniform(LOW, HIGH, (SLOTS, 2)).astype(np.float32),
            rng.normal(0, 3, SLOTS),
            rng.normal(size=(SLOTS, 3)).astype(np.float32),
            rng.random(SLOTS) < 0.3,
            rng.random(SLOTS) < 0.3,
        )
        agent.remember(step)
        steps.append(step)
    return Step(*(np.concatenate(parts) for parts in zip(*steps, strict=True)))


class TwoCritics(torch.nn.Module):
    """The two networks of a twin network as separate modules."""

    def __init__(self, twins):
        super().__init__()
        self.both = torch.nn.ModuleList(
            reference_mlp(
                [
                    part
                    for weight, bias in zip(twins.weights, twins.biases, strict=True)
                    for part in (weight[number].T, bias[number, 0])
                ],
                "relu",
            )
            for number in (0, 1)
        )

    def forward(self, states, actions):
        inputs = torch.cat([states, actions], 1)
        return [critic(inputs).squeeze(1) for critic in self.both]


def reference_sample(actor, states, noise):
    """Return the actions for this noise, and their log-probabilities."""
    mean, log_std = actor(states).chunk(2, 1)
    deviation = log_std.clamp(-20, 2).exp()
    distribution = TransformedDistribution(
        Independent(Normal(mean, deviation), 1), [TanhTransform(cache_size=1)]
    )
    actions = (mean + deviation * noise).tanh()
    return actions, distribution.log_prob(actions)


@pytest.mark.parametrize("learn_alpha", [True, False])
@pytest.mark.parametrize("target_entropy", [None, -0.5])
def test_losses_and_gradients_equal_the_reference(learn_alpha, target_entropy, monkeypatch):
    agent = make_sac(alpha=0.3, learn_alpha=learn_alpha, target_entropy=target_entropy)
    step = fill(agent)
    indices = np.array([0, 5, 5, 11, 17, 20, 23])
    monkeypatch.setattr(agent.memory, "sample", lambda *_: torch.as_tensor(indices))
    # All samples use the same noise, so that the order of sampling does not matter.
    noise = torch.randn(BATCH, 2, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(torch, "randn", lambda shape, **_: noise.expand(*shape).clone())
    monkeypatch.setattr(agent, "_update_targets", lambda: None)
    recorder = Recorder(
        monkeypatch, agent._critic_optimizer, agent._actor_optimizer, agent._alpha_optimizer
    )
    agent.learn(1)
    monkeypatch.undo()

    batch = Step(*(part[indices] for part in step))
    states, next_states = (
        torch.as_tensor(part / SCALE).double()
        for part in (batch.observations, batch.next_observations)
    )
    actor = reference_mlp(agent.actor.parameters(), "relu")
    critics, targets = TwoCritics(agent.critics), TwoCritics(agent.target_critics)
    actions, log_prob = reference_sample(actor, next_states, noise.double())
    next_values = torch.minimum(*targets(next_states, actions)) - 0.3 * log_prob
    not_terminated = torch.as_tensor(np.where(batch.terminated, 0.0, 1.0))
    expected_q = torch.as_tensor(batch.rewards) + 0.9 * not_terminated * next_values
    past_actions = torch.as_tensor((batch.actions - CENTER) / HALF_RANGE).double()
    critic_loss = sum(
        0.5 * ((q_values - expected_q.detach()) ** 2).mean()
        for q_values in critics(states, past_actions)
    )
    actions, log_prob = reference_sample(actor, states, noise.double())
    actor_loss = (0.3 * log_prob - torch.minimum(*critics(states, actions))).mean()
    alpha_loss = -np.log(0.3) * (log_prob.detach() + (target_entropy or -2.0)).mean()
    expected = [critic_loss, actor_loss, alpha_loss][: 2 + learn_alpha]
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-4) for loss in expected]

    # The layers of a twin network hold both networks side by side.
    separate = gradients(critic_loss, critics)
    half = len(separate) // 2
    layers = [torch.stack(pair) for pair in zip(separate[:half], separate[half:], strict=True)]
    weights = [layer.transpose(1, 2) for layer in layers[::2]]
    biases = [layer[:, None] for layer in layers[1::2]]
    assert all_close(recorder.gradients[0], weights + biases)
    assert all_close(recorder.gradients[1], gradients(actor_loss, actor))
    if learn_alpha:
        gradient = float(recorder.gradients[2][0])
        entropy = -float(log_prob.mean())
        assert gradient == pytest.approx(entropy - (target_entropy or -2.0), rel=1e-4)


@pytest.mark.parametrize(("target_entropy", "increases"), [(-100.0, False), (100.0, True)])
def test_the_temperature_follows_the_target_entropy(target_entropy, increases):
    agent = make_sac(target_entropy=target_entropy, alpha=0.5, learning_rate=0.01)
    fill(agent)
    agent.learn(20)
    assert (agent.metrics()["alpha"] > 0.5) is increases


def test_a_fixed_temperature_does_not_change():
    agent = make_sac(alpha=0.25, learn_alpha=False)
    fill(agent)
    agent.learn(20)
    assert agent.metrics()["alpha"] == pytest.approx(0.25)


def test_a_temperature_of_zero_is_supported():
    agent = make_sac(alpha=0.0, learn_alpha=False)
    fill(agent)
    agent.learn(10)
    metrics = agent.metrics()
    assert metrics["alpha"] == 0.0
    assert all(np.isfinite(value) for value in metrics.values())
    assert np.isfinite(agent.act_batch(np.ones((5, 3)))).all()


@pytest.mark.parametrize(("frequency", "tau"), [(1, 0.1), (1, 1.0), (3, 0.25)])
def test_the_target_networks_are_updated_softly(frequency, tau):
    agent = make_sac(target_update_freq=frequency, tau=tau)
    fill(agent)
    target = agent._target_vector.clone()
    for number in range(1, 8):
        agent.learn(1)
        if number % frequency == 0:
            target += tau * (agent._critic_vector - target)
        torch.testing.assert_close(agent._target_vector, target, rtol=1e-5, atol=1e-7)


def test_exploring_actions_are_sampled_from_the_policy():
    agent = make_sac()
    states = np.random.default_rng(1).normal(size=(SLOTS, 3)).astype(np.float32)
    actions = np.stack([agent.explore(states) for _ in range(3000)])
    assert actions.dtype == np.float32
    with torch.no_grad():
        mean, log_std = (part.numpy() for part in agent.actor(torch.as_tensor(states / SCALE)))
    before_tanh = np.arctanh(np.clip((actions - CENTER) / HALF_RANGE, -0.999999, 0.999999))
    np.testing.assert_allclose(before_tanh.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(before_tanh.std(0), np.exp(log_std), atol=0.1)
    best = agent.act_batch(states, deterministic=True)
    np.testing.assert_allclose(best, np.tanh(mean) * HALF_RANGE + CENTER, atol=1e-5)


def test_it_learns_a_contextual_bandit():
    """The best action equals the observation."""
    agent = make_agent(
        "SAC",
        AgentSpaces(1, spaces.Box(-3.0, 1.0, (1,))),
        {"hidden_dim": [32], "learning_rate": 0.01, "batch_size": 64, "alpha": 0.01}
        | {"learn_alpha": False, "buffer_size": 2000},
        num_slots=16,
    )
    rng, ended = np.random.default_rng(0), np.ones(16, bool)
    for _ in range(100):
        states = rng.uniform(-2.5, 0.5, (16, 1)).astype(np.float32)
        actions = agent.random_actions()
        rewards = -((actions - states) ** 2)[:, 0].astype(float)
        agent.remember(Step(states, actions, rewards, states, ended, ~ended))
        agent.learn(3)
    states = np.linspace(-2, 0, 9, dtype=np.float32)[:, None]
    actions = agent.act_batch(states, deterministic=True)
    assert np.abs(actions - states).mean() < 0.35
