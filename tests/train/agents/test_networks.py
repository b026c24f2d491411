"""The networks, next to their plainest forms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from shoal.train._agents.networks import Dueling, RunningScale, Scaled, Squashed, TwinValues, mlp
from tests.train.agents.plain import ACTIVATIONS, plain_mlp

EACH = pytest.mark.parametrize("activation", ACTIVATIONS)


@EACH
@pytest.mark.parametrize("hidden", [[5], [6, 3], [4, 4, 4]])
def test_layers_are_those_of_torch(activation, hidden):
    network = mlp([3, *hidden, 2], activation)
    inputs = torch.randn(9, 3)
    before = inputs.clone()
    expected = plain_mlp(network.parameters(), activation)(inputs.double()).float()
    torch.testing.assert_close(network(inputs), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(before, inputs)


@EACH
@pytest.mark.parametrize("choices", [1, 2, 7, 64, 65, 300])
def test_a_dueling_value_is_the_state_and_what_the_choice_adds(activation, choices):
    network = Dueling(3, [6, 4], choices, activation, True)
    inputs = torch.randn(9, 3)
    out = plain_mlp(network.layers.parameters(), activation)(inputs.double())
    worth, adds = out[:, :1], out[:, 1:]
    expected = worth + adds - adds.mean(1, keepdim=True)
    assert network(inputs).shape == (9, choices)
    torch.testing.assert_close(network(inputs), expected.float(), rtol=1e-4, atol=1e-6)


def test_without_dueling_values_are_those_of_the_last_layer():
    network = Dueling(3, [6], 4, "relu", False)
    inputs = torch.randn(9, 3)
    assert torch.equal(network(inputs), network.layers(inputs))


@EACH
@pytest.mark.parametrize("hidden", [[5], [6, 3]])
def test_twins_are_two_networks(activation, hidden):
    twins = TwinValues(5, hidden, activation)
    states, actions = torch.randn(11, 3), torch.randn(11, 2)
    found = twins(states, actions)
    assert found.shape == (2, 11)
    for number in (0, 1):
        parameters = [
            part
            for weight, bias in zip(twins.weights, twins.biases, strict=True)
            for part in (weight[number].T, bias[number, 0])
        ]
        alone = plain_mlp(parameters, activation)
        expected = alone(torch.cat([states, actions], 1).double()).squeeze(1)
        torch.testing.assert_close(found[number], expected.float(), rtol=1e-5, atol=1e-6)
    assert not torch.equal(found[0], found[1])


def test_twins_learn_by_themselves():
    twins = TwinValues(5, [4], "relu")
    twins(torch.randn(8, 3), torch.randn(8, 2))[0].sum().backward()
    for parameter in twins.parameters():
        assert not parameter.grad[1].any()


@EACH
def test_the_density_of_actions_is_that_of_a_normal_put_through_tanh(activation):
    actor = Squashed(4, [6], 3, activation).double()
    states, noise = torch.randn(50, 4).double(), torch.randn(50, 3).double()
    actions, density = actor.sample(states, noise)
    mean, log_std = actor(states)
    expected = TransformedDistribution(
        Independent(Normal(mean, log_std.exp()), 1), [TanhTransform(cache_size=1)]
    )
    torch.testing.assert_close(actions, (mean + log_std.exp() * noise).tanh())
    torch.testing.assert_close(density, expected.log_prob(actions), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("push", [0.0, 5.0, 20.0, 200.0, -200.0])
def test_densities_and_their_gradients_stay_finite_at_the_edge(push):
    actor = Squashed(2, [4], 2, "relu")
    with torch.no_grad():
        actor.layers[-1].bias[:2] = push
    actions, density = actor.sample(torch.randn(20, 2), torch.randn(20, 2))
    density.sum().backward()
    assert bool(density.isfinite().all())
    assert bool((actions.abs() <= 1.0).all())
    assert all(bool(parameter.grad.isfinite().all()) for parameter in actor.parameters())
    # Against the formula in 64 bits, where it does not overflow.
    if abs(push) <= 5.0:
        mean, log_std = (part.double() for part in actor(torch.zeros(1, 2)))
        noise = torch.zeros(1, 2)
        _, found = actor.sample(torch.zeros(1, 2), noise)
        slope = torch.log(1 - mean.tanh() ** 2)
        expected = (-log_std - 0.5 * math.log(2 * math.pi) - slope).sum(1)
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-3)


def test_deviations_have_bounds():
    actor = Squashed(1, [2], 1, "relu")
    for push, expected in ((1e3, 2.0), (-1e3, -20.0)):
        with torch.no_grad():
            actor.layers[-1].bias[1] = push
        assert actor(torch.zeros(1, 1))[1].item() == expected


def test_observations_are_divided_by_their_scale():
    scaled = Scaled(np.array([1.0, 2.0, 0.25], np.float32))
    assert scaled(torch.tensor([[1.0, 1.0, 1.0]])).tolist() == [[1.0, 0.5, 4.0]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 2**31))
def test_a_running_scale_knows_mean_and_deviation_of_all_it_has_seen(sizes, seed):
    rng = np.random.default_rng(seed)
    scale = np.array([1.0, 0.5], np.float32)
    running = RunningScale(scale)
    parts = [rng.normal(rng.normal(0, 9, 2), [0.5, 4.0], (size, 2)) for size in [*sizes, 50]]
    for part in parts:
        running.learn(torch.tensor(part, dtype=torch.float32))
    seen = np.concatenate(parts) / scale
    np.testing.assert_allclose(running.mean, seen.mean(0), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(running.variance, seen.var(0), rtol=1e-3, atol=1e-3)
    given = running(torch.tensor(np.concatenate(parts), dtype=torch.float32)).numpy()
    expected = np.clip((seen - seen.mean(0)) / seen.std(0), -10, 10)
    np.testing.assert_allclose(given, expected, atol=0.01)


def test_a_running_scale_goes_on_counting_after_billions():
    running = RunningScale(np.ones(1, np.float32))
    running.count.fill_(1e12)
    running.learn(torch.ones(1, 1))
    assert float(running.count) == 1e12 + 1
    assert float(running.mean) > 0.0
