"""The policies of PPO, compared with the distributions of torch."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Categorical, Normal

from shoal.train import AgentSpaces
from shoal.train._agents.policies import CategoricalPolicy, GaussianPolicy
from shoal.train._config.agent_settings import PPOSettings

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
SMALL = {"hidden_dim": [8]}


def categorical(count=4, scale=1.0):
    policy = CategoricalPolicy(AgentSpaces(3, spaces.Discrete(count)), PPOSettings(**SMALL))
    with torch.no_grad():
        policy.actor[-1].weight.mul_(100.0 * scale)
    return policy


def gaussian(log_std=-0.5):
    box = spaces.Box(LOW, HIGH)
    policy = GaussianPolicy(AgentSpaces(3, box), PPOSettings(log_std=log_std, **SMALL))
    with torch.no_grad():
        policy.actor[-1].weight.mul_(50.0)
        policy.log_std.add_(torch.tensor([0.0, 0.3]))
    return policy


def test_discrete_actions_are_sampled_by_their_probabilities():
    policy, generator = categorical(), torch.Generator().manual_seed(0)
    state = torch.randn(1, 3)
    actions, _ = policy.sample(state.expand(40_000, 3), generator)
    probabilities = policy.actor(state).softmax(1)[0].detach().numpy()
    assert probabilities.max() < 0.9
    frequencies = np.bincount(actions, minlength=4) / 40_000
    np.testing.assert_allclose(frequencies, probabilities, atol=0.01)


def test_a_rare_action_is_sampled_rarely():
    policy, generator = categorical(2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        policy.actor[-1].weight.zero_()
        policy.actor[-1].bias.copy_(torch.tensor([0.0, math.log(0.001)]))
    actions, log_prob = policy.sample(torch.zeros(100_000, 3), generator)
    assert float(actions.double().mean()) == pytest.approx(0.001, abs=0.0005)
    assert log_prob[actions == 1].exp().mean().item() == pytest.approx(0.001, rel=0.01)


def test_categorical_log_probs_and_entropy_match_torch():
    policy, generator = categorical(), torch.Generator().manual_seed(0)
    states = torch.randn(50, 3)
    actions, log_prob = policy.sample(states, generator)
    expected = Categorical(logits=policy.actor(states))
    torch.testing.assert_close(log_prob, expected.log_prob(actions))
    evaluated, entropy, value = policy.evaluate_actions(states, actions)
    torch.testing.assert_close(evaluated, log_prob)
    torch.testing.assert_close(entropy, expected.entropy())
    assert torch.equal(value, policy.value(states))
    assert torch.equal(policy.mode(states), expected.probs.argmax(1))


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_near_certain_actions_have_finite_log_probs_and_gradients(scale):
    policy, generator = categorical(scale=scale), torch.Generator().manual_seed(0)
    states = torch.randn(200, 3)
    actions, log_prob = policy.sample(states, generator)
    evaluated, entropy, _ = policy.evaluate_actions(states, actions)
    (evaluated.sum() + entropy.sum()).backward()
    gradients = [parameter.grad for parameter in policy.actor.parameters()]
    for tensor in (log_prob, evaluated, entropy, *gradients):
        assert bool(tensor.isfinite().all())


def test_gaussian_log_probs_and_entropy_match_torch():
    """They are those of normalized actions; probability ratios do not depend on this."""
    policy, generator = gaussian(), torch.Generator().manual_seed(0)
    states = torch.randn(50, 3)
    actions, log_prob = policy.sample(states, generator)
    center, half_range = torch.as_tensor((LOW + HIGH) / 2), torch.as_tensor((HIGH - LOW) / 2)
    expected = Normal(policy.actor(states), policy.log_std.exp())
    expected_log_prob = expected.log_prob((actions - center) / half_range).sum(1)
    torch.testing.assert_close(log_prob, expected_log_prob, rtol=1e-4, atol=1e-5)
    evaluated, entropy, value = policy.evaluate_actions(states, actions)
    torch.testing.assert_close(evaluated, expected_log_prob, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(entropy.expand(50), expected.entropy().sum(1))
    assert torch.equal(value, policy.value(states))


def test_continuous_actions_are_sampled_with_the_mean_and_deviation():
    policy, generator = gaussian(), torch.Generator().manual_seed(0)
    state = torch.randn(1, 3)
    actions = policy.sample(state.expand(20_000, 3), generator)[0].detach().numpy()
    mean = (policy.actor(state)[0].detach().numpy()) * (HIGH - LOW) / 2 + (LOW + HIGH) / 2
    np.testing.assert_allclose(actions.mean(0), mean, atol=0.05)
    deviation = np.exp([-0.5, -0.2]) * (HIGH - LOW) / 2
    np.testing.assert_allclose(actions.std(0), deviation, rtol=0.03)
    best = policy.mode(state)[0].detach().numpy()
    np.testing.assert_allclose(best, np.clip(mean, LOW, HIGH), rtol=1e-5)


def test_the_mode_of_continuous_actions_is_within_the_bounds():
    policy = gaussian()
    with torch.no_grad():
        policy.actor[-1].weight.mul_(1e3)
    actions = policy.mode(torch.randn(100, 3)).detach().numpy()
    assert (actions >= LOW).all()
    assert (actions <= HIGH).all()
    assert (actions == LOW).any()
    assert (actions == HIGH).any()


def test_an_untrained_policy_is_nearly_uniform():
    policy = CategoricalPolicy(AgentSpaces(3, spaces.Discrete(4)), PPOSettings(hidden_dim=[64, 64]))
    probabilities = policy.actor(torch.randn(100, 3)).softmax(1)
    assert (probabilities - 0.25).abs().max().item() < 0.05
