"""How likely PPO holds its actions, next to the distributions of torch."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Categorical, Normal

from shoal.train import AgentSpaces
from shoal.train._agents.policies import ChoicePolicy, NumberPolicy
from shoal.train._config.agent_settings import PPOSettings

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
SMALL = {"hidden_dim": [8]}


def choices(count=4, push=1.0):
    policy = ChoicePolicy(AgentSpaces(3, spaces.Discrete(count)), PPOSettings(**SMALL))
    with torch.no_grad():
        policy.actor[-1].weight.mul_(100.0 * push)
    return policy


def numbers(log_std=-0.5):
    box = spaces.Box(LOW, HIGH)
    policy = NumberPolicy(AgentSpaces(3, box), PPOSettings(log_std=log_std, **SMALL))
    with torch.no_grad():
        policy.actor[-1].weight.mul_(50.0)
        policy.log_std.add_(torch.tensor([0.0, 0.3]))
    return policy


def test_choices_are_drawn_as_often_as_they_are_likely():
    policy, generator = choices(), torch.Generator().manual_seed(0)
    state = torch.randn(1, 3)
    drawn, _ = policy.draw(state.expand(40_000, 3), generator)
    likely = policy.actor(state).softmax(1)[0].detach().numpy()
    assert likely.max() < 0.9
    found = np.bincount(drawn, minlength=4) / 40_000
    np.testing.assert_allclose(found, likely, atol=0.01)


def test_a_choice_that_is_hardly_likely_is_hardly_drawn():
    policy, generator = choices(2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        policy.actor[-1].weight.zero_()
        policy.actor[-1].bias.copy_(torch.tensor([0.0, math.log(0.001)]))
    drawn, density = policy.draw(torch.zeros(100_000, 3), generator)
    assert float(drawn.double().mean()) == pytest.approx(0.001, abs=0.0005)
    assert density[drawn == 1].exp().mean().item() == pytest.approx(0.001, rel=0.01)


def test_choices_have_the_density_and_entropy_of_torch():
    policy, generator = choices(), torch.Generator().manual_seed(0)
    states = torch.randn(50, 3)
    drawn, density = policy.draw(states, generator)
    expected = Categorical(logits=policy.actor(states))
    torch.testing.assert_close(density, expected.log_prob(drawn))
    judged, entropy, value = policy.judge(states, drawn)
    torch.testing.assert_close(judged, density)
    torch.testing.assert_close(entropy, expected.entropy())
    assert torch.equal(value, policy.value(states))
    assert torch.equal(policy.best(states), expected.probs.argmax(1))


@pytest.mark.parametrize("push", [1e3, 1e6])
def test_choices_that_are_certain_stay_finite(push):
    policy, generator = choices(push=push), torch.Generator().manual_seed(0)
    states = torch.randn(200, 3)
    drawn, density = policy.draw(states, generator)
    judged, entropy, _ = policy.judge(states, drawn)
    (judged.sum() + entropy.sum()).backward()
    for found in (density, judged, entropy, *(p.grad for p in policy.actor.parameters())):
        assert bool(found.isfinite().all())


def test_numbers_have_the_density_and_entropy_of_torch():
    """In units of the reach of each number, which no ratio of densities depends on."""
    policy, generator = numbers(), torch.Generator().manual_seed(0)
    states = torch.randn(50, 3)
    drawn, density = policy.draw(states, generator)
    middle, reach = torch.as_tensor((LOW + HIGH) / 2), torch.as_tensor((HIGH - LOW) / 2)
    expected = Normal(policy.actor(states), policy.log_std.exp())
    log_prob = expected.log_prob((drawn - middle) / reach).sum(1)
    torch.testing.assert_close(density, log_prob, rtol=1e-4, atol=1e-5)
    judged, entropy, value = policy.judge(states, drawn)
    torch.testing.assert_close(judged, log_prob, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(entropy.expand(50), expected.entropy().sum(1))
    assert torch.equal(value, policy.value(states))


def test_numbers_are_drawn_around_their_means():
    policy, generator = numbers(), torch.Generator().manual_seed(0)
    state = torch.randn(1, 3)
    drawn = policy.draw(state.expand(20_000, 3), generator)[0].detach().numpy()
    mean = (policy.actor(state)[0].detach().numpy()) * (HIGH - LOW) / 2 + (LOW + HIGH) / 2
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.05)
    deviation = np.exp([-0.5, -0.2]) * (HIGH - LOW) / 2
    np.testing.assert_allclose(drawn.std(0), deviation, rtol=0.03)
    best = policy.best(state)[0].detach().numpy()
    np.testing.assert_allclose(best, np.clip(mean, LOW, HIGH), rtol=1e-5)


def test_the_likeliest_numbers_are_within_their_bounds():
    policy = numbers()
    with torch.no_grad():
        policy.actor[-1].weight.mul_(1e3)
    found = policy.best(torch.randn(100, 3)).detach().numpy()
    assert (found >= LOW).all()
    assert (found <= HIGH).all()
    assert (found == LOW).any()
    assert (found == HIGH).any()


def test_policies_begin_undecided():
    """So that nothing is ruled out before it was tried."""
    policy = ChoicePolicy(AgentSpaces(3, spaces.Discrete(4)), PPOSettings(hidden_dim=[64, 64]))
    likely = policy.actor(torch.randn(100, 3)).softmax(1)
    assert (likely - 0.25).abs().max().item() < 0.05
