"""The optimiser of flat parameters, next to those of torch."""

import copy

import pytest
import torch
from torch import nn

from shoal.train._agents.learner import Learner, flattened
from shoal.train._agents.networks import Dueling, Squashed, Temperature, TwinValues, mlp

MODULES = {
    "mlp": lambda: mlp([3, 8, 5, 2], "relu"),
    "dueling": lambda: Dueling(3, [8], 4, "tanh", True),
    "twins": lambda: TwinValues(3, [8, 4], "elu"),
    "squashed": lambda: Squashed(3, [8], 2, "silu"),
}


def outputs(module, inputs):
    found = (
        module(inputs[:, :2], inputs[:, 2:]) if isinstance(module, TwinValues) else module(inputs)
    )
    return torch.cat([part.flatten() for part in found]) if isinstance(found, tuple) else found


@pytest.mark.parametrize("max_norm", [None, 0.05, 100.0])
@pytest.mark.parametrize("name", MODULES)
def test_it_steps_as_adam_does(name, max_norm):
    torch.manual_seed(0)
    module = MODULES[name]()
    twin = copy.deepcopy(module)
    learner = Learner(module, 0.003, max_norm)
    adam = torch.optim.Adam(twin.parameters(), 0.003)
    for number in range(50):
        inputs = torch.randn(16, 3)
        scale = 10.0 ** (number % 4 - 2)
        learner.descend(outputs(module, inputs).square().mean() * scale)
        adam.zero_grad()
        (outputs(twin, inputs).square().mean() * scale).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(twin.parameters(), max_norm)
        adam.step()
    for one, other in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-6)
    moments = [adam.state[parameter] for parameter in twin.parameters()]
    for key, name in (("mean", "exp_avg"), ("square", "exp_avg_sq")):
        expected = torch.cat([moment[name].flatten() for moment in moments])
        torch.testing.assert_close(learner.state()[key], expected, rtol=1e-3, atol=1e-7)
    assert float(learner.state()["count"]) == 50


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-1])
def test_epsilon_and_the_rate_are_those_of_adam(epsilon):
    parameter, twin = Temperature(0.5), Temperature(0.5)
    learner = Learner(parameter, 0.1, None, epsilon)
    adam = torch.optim.Adam(twin.parameters(), 0.1, eps=epsilon)
    for number in range(20):
        if number == 10:
            learner.set_rate(0.01)
            adam.param_groups[0]["lr"] = 0.01
        learner.descend(parameter.log_alpha.square() * 1e-3)
        adam.zero_grad()
        (twin.log_alpha.square() * 1e-3).backward()
        adam.step()
    torch.testing.assert_close(parameter.log_alpha, twin.log_alpha)


def test_a_rate_of_zero_learns_nothing():
    module = mlp([2, 3, 1], "relu")
    learner = Learner(module, 0.1, None)
    before = learner.vector.clone()
    learner.set_rate(0.0)
    learner.descend(module(torch.ones(1, 2)).sum())
    assert torch.equal(learner.vector, before)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e9])
def test_gradients_are_shortened_as_torch_shortens_them(scale, monkeypatch):
    module = mlp([2, 3, 1], "relu")
    twin = copy.deepcopy(module)
    learner = Learner(module, 0.1, 0.5)
    learner.descend(module(torch.ones(4, 2)).sum() * scale)
    (twin(torch.ones(4, 2)).sum() * scale).backward()
    nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
    expected = torch.cat([parameter.grad.flatten() for parameter in twin.parameters()])
    # The mean after one step is a tenth of the gradient.
    torch.testing.assert_close(learner.state()["mean"], expected * 0.1, rtol=1e-4, atol=1e-12)


def test_only_its_own_parameters_learn():
    ours, others = mlp([2, 3, 1], "relu"), mlp([2, 3, 1], "relu")
    learner = Learner(ours, 0.1, None)
    before = [parameter.clone() for parameter in others.parameters()]
    learner.descend((ours(torch.ones(1, 2)) + others(torch.ones(1, 2))).sum())
    assert all(map(torch.equal, before, others.parameters()))
    assert all(parameter.grad is None for parameter in others.parameters())


@pytest.mark.parametrize("name", MODULES)
def test_flattening_changes_no_value_and_shares_memory(name):
    module = MODULES[name]()
    before = [parameter.clone() for parameter in module.parameters()]
    shapes = [parameter.shape for parameter in module.parameters()]
    vector = flattened(module)
    assert all(map(torch.equal, before, module.parameters()))
    assert [parameter.shape for parameter in module.parameters()] == shapes
    assert vector.numel() == sum(parameter.numel() for parameter in before)
    vector.data.fill_(2.0)
    assert all(bool((parameter == 2.0).all()) for parameter in module.parameters())
    module.load_state_dict({key: torch.ones_like(v) for key, v in module.state_dict().items()})
    assert bool((vector == 1.0).all())


def test_what_was_gathered_is_restored():
    torch.manual_seed(0)
    module = mlp([2, 3, 1], "tanh")
    twin = copy.deepcopy(module)
    one, other = Learner(module, 0.1, 1.0), Learner(twin, 0.1, 1.0)
    for _ in range(5):
        one.descend(module(torch.randn(4, 2)).square().mean())
    twin.load_state_dict(module.state_dict())
    other.restore(copy.deepcopy(one.state()))
    for _ in range(5):
        inputs = torch.randn(4, 2)
        one.descend(module(inputs).square().mean())
        other.descend(twin(inputs).square().mean())
    assert torch.equal(one.vector, other.vector)
