"""What SAC learns from a batch, computed once more by hand."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from tests.train.agents.plain import Recorder, all_close, gradients, plain_mlp

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
MIDDLE, REACH = (LOW + HIGH) / 2, (HIGH - LOW) / 2
SCALE = np.array([1.0, 2.0, 0.5], np.float32)
SLOTS, STEPS, BATCH = 4, 6, 7


def made(**settings):
    box = AgentSpaces(3, spaces.Box(LOW, HIGH), observation_scale=SCALE)
    small = {"hidden_dim": [8, 5], "batch_size": BATCH, "buffer_size": 100, "gamma": 0.9}
    agent = make_agent("SAC", box, small | settings, num_slots=SLOTS, seed=3)
    other = torch.randn(len(agent._following), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        agent._following.add_(other * 0.1)  # so that it matters which networks are asked
    return agent


def filled(agent, seed=0):
    rng = np.random.default_rng(seed)
    found = []
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
        found.append(step)
    return Step(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class TwoCritics(torch.nn.Module):
    """Two networks that know nothing of each other."""

    def __init__(self, twins):
        super().__init__()
        self.both = torch.nn.ModuleList(
            plain_mlp(
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


def drawn(actor, states, noise):
    mean, log_std = actor(states).chunk(2, 1)
    deviation = log_std.clamp(-20, 2).exp()
    distribution = TransformedDistribution(
        Independent(Normal(mean, deviation), 1), [TanhTransform(cache_size=1)]
    )
    actions = (mean + deviation * noise).tanh()
    return actions, distribution.log_prob(actions)


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("target_entropy", [None, -0.5])
def test_losses_and_gradients_are_those_computed_by_hand(learns, target_entropy, monkeypatch):
    agent = made(alpha=0.3, learn_alpha=learns, target_entropy=target_entropy)
    step = filled(agent)
    places = np.array([0, 5, 5, 11, 17, 20, 23])
    monkeypatch.setattr(agent.memory, "draw", lambda *_: torch.as_tensor(places))
    # The same noise everywhere, so that it does not matter which is drawn first.
    noise = torch.randn(BATCH, 2, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(torch, "randn", lambda shape, **_: noise.expand(*shape).clone())
    monkeypatch.setattr(agent, "_follow", lambda: None)
    recorder = Recorder(
        monkeypatch, agent._critic_learner, agent._actor_learner, agent._alpha_learner
    )
    agent.learn(1)
    monkeypatch.undo()

    taken = Step(*(part[places] for part in step))
    states, later = (
        torch.as_tensor(part / SCALE).double()
        for part in (taken.observations, taken.next_observations)
    )
    actor = plain_mlp(agent.actor.parameters(), "relu")
    critics, targets = TwoCritics(agent.critics), TwoCritics(agent._targets)
    actions, density = drawn(actor, later, noise.double())
    best = torch.minimum(*targets(later, actions)) - 0.3 * density
    goes_on = torch.as_tensor(np.where(taken.terminated, 0.0, 1.0))
    wanted = (torch.as_tensor(taken.rewards) + 0.9 * goes_on * best).detach()
    done = torch.as_tensor((taken.actions - MIDDLE) / REACH).double()
    critic_loss = sum(0.5 * ((held - wanted) ** 2).mean() for held in critics(states, done))
    actions, density = drawn(actor, states, noise.double())
    actor_loss = (0.3 * density - torch.minimum(*critics(states, actions))).mean()
    alpha_loss = -np.log(0.3) * (density.detach() + (target_entropy or -2.0)).mean()
    expected = [critic_loss, actor_loss, alpha_loss][: 2 + learns]
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-4) for loss in expected]

    # The twins' layers hold both networks side by side.
    plain = gradients(critic_loss, critics)
    half = len(plain) // 2
    layers = [torch.stack(pair) for pair in zip(plain[:half], plain[half:], strict=True)]
    weights = [layer.transpose(1, 2) for layer in layers[::2]]
    biases = [layer[:, None] for layer in layers[1::2]]
    assert all_close(recorder.gradients[0], weights + biases)
    assert all_close(recorder.gradients[1], gradients(actor_loss, actor))
    if learns:
        found = float(recorder.gradients[2][0])
        entropy = -float(density.mean())
        assert found == pytest.approx(entropy - (target_entropy or -2.0), rel=1e-4)


@pytest.mark.parametrize(("entropy", "rises"), [(-100.0, False), (100.0, True)])
def test_the_temperature_goes_where_the_entropy_is_wanted(entropy, rises):
    agent = made(target_entropy=entropy, alpha=0.5, learning_rate=0.01)
    filled(agent)
    agent.learn(20)
    assert (agent.metrics()["alpha"] > 0.5) is rises


def test_a_temperature_that_is_not_learnt_stays():
    agent = made(alpha=0.25, learn_alpha=False)
    filled(agent)
    agent.learn(20)
    assert agent.metrics()["alpha"] == pytest.approx(0.25)


def test_a_temperature_of_zero_is_plain_actor_critic():
    agent = made(alpha=0.0, learn_alpha=False)
    filled(agent)
    agent.learn(10)
    told = agent.metrics()
    assert told["alpha"] == 0.0
    assert all(np.isfinite(value) for value in told.values())
    assert np.isfinite(agent.act_batch(np.ones((5, 3)))).all()


@pytest.mark.parametrize(("often", "tau"), [(1, 0.1), (1, 1.0), (3, 0.25)])
def test_the_targets_follow(often, tau):
    agent = made(target_update_freq=often, tau=tau)
    filled(agent)
    target = agent._following.clone()
    for number in range(1, 8):
        agent.learn(1)
        if number % often == 0:
            target += tau * (agent._followed - target)
        torch.testing.assert_close(agent._following, target, rtol=1e-5, atol=1e-7)


def test_actions_that_are_explored_are_drawn_from_the_policy():
    agent = made()
    seen = np.random.default_rng(1).normal(size=(SLOTS, 3)).astype(np.float32)
    found = np.stack([agent.explore(seen) for _ in range(3000)])
    assert found.dtype == np.float32
    with torch.no_grad():
        mean, log_std = (part.numpy() for part in agent.actor(torch.as_tensor(seen / SCALE)))
    before_tanh = np.arctanh(np.clip((found - MIDDLE) / REACH, -0.999999, 0.999999))
    np.testing.assert_allclose(before_tanh.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(before_tanh.std(0), np.exp(log_std), atol=0.1)
    best = agent.act_batch(seen, deterministic=True)
    np.testing.assert_allclose(best, np.tanh(mean) * REACH + MIDDLE, atol=1e-5)


def test_it_learns_what_is_worth_more():
    """The best action is what is seen."""
    agent = make_agent(
        "SAC",
        AgentSpaces(1, spaces.Box(-3.0, 1.0, (1,))),
        {"hidden_dim": [32], "learning_rate": 0.01, "batch_size": 64, "alpha": 0.01}
        | {"learn_alpha": False, "buffer_size": 2000},
        num_slots=16,
    )
    rng, ended = np.random.default_rng(0), np.ones(16, bool)
    for _ in range(100):
        seen = rng.uniform(-2.5, 0.5, (16, 1)).astype(np.float32)
        actions = agent.random_actions()
        rewards = -((actions - seen) ** 2)[:, 0].astype(float)
        agent.remember(Step(seen, actions, rewards, seen, ended, ~ended))
        agent.learn(3)
    wanted = np.linspace(-2, 0, 9, dtype=np.float32)[:, None]
    found = agent.act_batch(wanted, deterministic=True)
    assert np.abs(found - wanted).mean() < 0.35
