"""The networks, compared with reference implementations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from shoal.train._agents.networks import (
    DuelingNetwork,
    NormalizeObservations,
    ScaleObservations,
    SquashedGaussian,
    TwinQNetwork,
    mlp,
)
from tests.train.agents.reference import ACTIVATIONS, reference_mlp

EACH = pytest.mark.parametrize("activation", ACTIVATIONS)


@EACH
@pytest.mark.parametrize("hidden", [[5], [6, 3], [4, 4, 4]])
def test_an_mlp_equals_the_reference(activation, hidden):
    network = mlp([3, *hidden, 2], activation)
    inputs = torch.randn(9, 3)
    before = inputs.clone()
    expected = reference_mlp(network.parameters(), activation)(inputs.double()).float()
    torch.testing.assert_close(network(inputs), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(before, inputs)


@EACH
@pytest.mark.parametrize("choices", [1, 2, 7, 64, 65, 300])
def test_dueling_q_values_are_value_plus_centred_advantage(activation, choices):
    network = DuelingNetwork(3, [6, 4], choices, activation, True)
    inputs = torch.randn(9, 3)
    out = reference_mlp(network.layers.parameters(), activation)(inputs.double())
    value, advantage = out[:, :1], out[:, 1:]
    expected = value + advantage - advantage.mean(1, keepdim=True)
    assert network(inputs).shape == (9, choices)
    torch.testing.assert_close(network(inputs), expected.float(), rtol=1e-4, atol=1e-6)


def test_without_dueling_q_values_are_the_last_layer():
    network = DuelingNetwork(3, [6], 4, "relu", False)
    inputs = torch.randn(9, 3)
    assert torch.equal(network(inputs), network.layers(inputs))


@EACH
@pytest.mark.parametrize("hidden", [[5], [6, 3]])
def test_a_twin_network_equals_two_networks(activation, hidden):
    twins = TwinQNetwork(5, hidden, activation)
    states, actions = torch.randn(11, 3), torch.randn(11, 2)
    q_values = twins(states, actions)
    assert q_values.shape == (2, 11)
    for number in (0, 1):
        parameters = [
            part
            for weight, bias in zip(twins.weights, twins.biases, strict=True)
            for part in (weight[number].T, bias[number, 0])
        ]
        network = reference_mlp(parameters, activation)
        expected = network(torch.cat([states, actions], 1).double()).squeeze(1)
        torch.testing.assert_close(q_values[number], expected.float(), rtol=1e-5, atol=1e-6)
    assert not torch.equal(q_values[0], q_values[1])


def test_gradients_of_twin_networks_are_independent():
    twins = TwinQNetwork(5, [4], "relu")
    twins(torch.randn(8, 3), torch.randn(8, 2))[0].sum().backward()
    for parameter in twins.parameters():
        assert not parameter.grad[1].any()


@EACH
def test_log_probs_equal_those_of_a_tanh_transformed_normal(activation):
    actor = SquashedGaussian(4, [6], 3, activation).double()
    states, noise = torch.randn(50, 4).double(), torch.randn(50, 3).double()
    actions, log_prob = actor.sample(states, noise)
    mean, log_std = actor(states)
    expected = TransformedDistribution(
        Independent(Normal(mean, log_std.exp()), 1), [TanhTransform(cache_size=1)]
    )
    torch.testing.assert_close(actions, (mean + log_std.exp() * noise).tanh())
    torch.testing.assert_close(log_prob, expected.log_prob(actions), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [0.0, 5.0, 20.0, 200.0, -200.0])
def test_log_probs_and_their_gradients_are_finite_for_saturated_actions(bias):
    actor = SquashedGaussian(2, [4], 2, "relu")
    with torch.no_grad():
        actor.layers[-1].bias[:2] = bias
    actions, log_prob = actor.sample(torch.randn(20, 2), torch.randn(20, 2))
    log_prob.sum().backward()
    assert bool(log_prob.isfinite().all())
    assert bool((actions.abs() <= 1.0).all())
    assert all(bool(parameter.grad.isfinite().all()) for parameter in actor.parameters())
    # Compare with the plain formula in float64, where it does not overflow.
    if abs(bias) <= 5.0:
        mean, log_std = (part.double() for part in actor(torch.zeros(1, 2)))
        noise = torch.zeros(1, 2)
        _, log_prob = actor.sample(torch.zeros(1, 2), noise)
        log_slope = torch.log(1 - mean.tanh() ** 2)
        expected = (-log_std - 0.5 * math.log(2 * math.pi) - log_slope).sum(1)
        torch.testing.assert_close(log_prob.double(), expected, rtol=1e-3, atol=1e-3)


def test_log_std_is_clamped():
    actor = SquashedGaussian(1, [2], 1, "relu")
    for bias, expected in ((1e3, 2.0), (-1e3, -20.0)):
        with torch.no_grad():
            actor.layers[-1].bias[1] = bias
        assert actor(torch.zeros(1, 1))[1].item() == expected


def test_observations_are_divided_by_their_scale():
    scale = ScaleObservations(np.array([1.0, 2.0, 0.25], np.float32))
    assert scale(torch.tensor([[1.0, 1.0, 1.0]])).tolist() == [[1.0, 0.5, 4.0]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 2**31))
def test_running_statistics_equal_those_of_all_observations(sizes, seed):
    rng = np.random.default_rng(seed)
    scale = np.array([1.0, 0.5], np.float32)
    running = NormalizeObservations(scale)
    parts = [rng.normal(rng.normal(0, 9, 2), [0.5, 4.0], (size, 2)) for size in [*sizes, 50]]
    for part in parts:
        running.update(torch.tensor(part, dtype=torch.float32))
    scaled = np.concatenate(parts) / scale
    np.testing.assert_allclose(running.mean, scaled.mean(0), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(running.variance, scaled.var(0), rtol=1e-3, atol=1e-3)
    normalized = running(torch.tensor(np.concatenate(parts), dtype=torch.float32)).numpy()
    expected = np.clip((scaled - scaled.mean(0)) / scaled.std(0), -10, 10)
    np.testing.assert_allclose(normalized, expected, atol=0.01)


def test_running_statistics_still_update_after_a_trillion_observations():
    running = NormalizeObservations(np.ones(1, np.float32))
    running.count.fill_(1e12)
    running.update(torch.ones(1, 1))
    assert float(running.count) == 1e12 + 1
    assert float(running.mean) > 0.0
