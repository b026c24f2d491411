"""FlatAdam, compared with torch.optim.Adam."""

import copy

import pytest
import torch
from torch import nn

from shoal.train._agents.flat_adam import FlatAdam, flatten_parameters
from shoal.train._agents.networks import (
    DuelingNetwork,
    SquashedGaussian,
    Temperature,
    TwinQNetwork,
    mlp,
)

MODULES = {
    "mlp": lambda: mlp([3, 8, 5, 2], "relu"),
    "dueling": lambda: DuelingNetwork(3, [8], 4, "tanh", True),
    "twins": lambda: TwinQNetwork(3, [8, 4], "elu"),
    "squashed": lambda: SquashedGaussian(3, [8], 2, "silu"),
}


def outputs(module, inputs):
    if isinstance(module, TwinQNetwork):
        return module(inputs[:, :2], inputs[:, 2:])
    out = module(inputs)
    return torch.cat([part.flatten() for part in out]) if isinstance(out, tuple) else out


@pytest.mark.parametrize("max_norm", [None, 0.05, 100.0])
@pytest.mark.parametrize("name", MODULES)
def test_steps_equal_those_of_torch_adam(name, max_norm):
    torch.manual_seed(0)
    module = MODULES[name]()
    twin = copy.deepcopy(module)
    optimizer = FlatAdam(module, 0.003, max_norm)
    adam = torch.optim.Adam(twin.parameters(), 0.003)
    for number in range(50):
        inputs = torch.randn(16, 3)
        scale = 10.0 ** (number % 4 - 2)
        optimizer.step(outputs(module, inputs).square().mean() * scale)
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
        torch.testing.assert_close(optimizer.state()[key], expected, rtol=1e-3, atol=1e-7)
    assert float(optimizer.state()["count"]) == 50


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-1])
def test_epsilon_and_learning_rate_match_torch_adam(epsilon):
    parameter, twin = Temperature(0.5), Temperature(0.5)
    optimizer = FlatAdam(parameter, 0.1, None, epsilon)
    adam = torch.optim.Adam(twin.parameters(), 0.1, eps=epsilon)
    for number in range(20):
        if number == 10:
            optimizer.set_learning_rate(0.01)
            adam.param_groups[0]["lr"] = 0.01
        optimizer.step(parameter.log_alpha.square() * 1e-3)
        adam.zero_grad()
        (twin.log_alpha.square() * 1e-3).backward()
        adam.step()
    torch.testing.assert_close(parameter.log_alpha, twin.log_alpha)


def test_a_learning_rate_of_zero_changes_nothing():
    module = mlp([2, 3, 1], "relu")
    optimizer = FlatAdam(module, 0.1, None)
    before = optimizer.vector.clone()
    optimizer.set_learning_rate(0.0)
    optimizer.step(module(torch.ones(1, 2)).sum())
    assert torch.equal(optimizer.vector, before)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e9])
def test_gradients_are_clipped_like_clip_grad_norm(scale):
    module = mlp([2, 3, 1], "relu")
    twin = copy.deepcopy(module)
    optimizer = FlatAdam(module, 0.1, 0.5)
    optimizer.step(module(torch.ones(4, 2)).sum() * scale)
    (twin(torch.ones(4, 2)).sum() * scale).backward()
    nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
    expected = torch.cat([parameter.grad.flatten() for parameter in twin.parameters()])
    # After one step, the first moment is a tenth of the gradient.
    torch.testing.assert_close(optimizer.state()["mean"], expected * 0.1, rtol=1e-4, atol=1e-12)


def test_only_the_parameters_of_its_module_change():
    ours, others = mlp([2, 3, 1], "relu"), mlp([2, 3, 1], "relu")
    optimizer = FlatAdam(ours, 0.1, None)
    before = [parameter.clone() for parameter in others.parameters()]
    optimizer.step((ours(torch.ones(1, 2)) + others(torch.ones(1, 2))).sum())
    assert all(map(torch.equal, before, others.parameters()))
    assert all(parameter.grad is None for parameter in others.parameters())


@pytest.mark.parametrize("name", MODULES)
def test_flattened_parameters_keep_their_values_and_share_memory(name):
    module = MODULES[name]()
    before = [parameter.clone() for parameter in module.parameters()]
    shapes = [parameter.shape for parameter in module.parameters()]
    vector = flatten_parameters(module)
    assert all(map(torch.equal, before, module.parameters()))
    assert [parameter.shape for parameter in module.parameters()] == shapes
    assert vector.numel() == sum(parameter.numel() for parameter in before)
    vector.data.fill_(2.0)
    assert all(bool((parameter == 2.0).all()) for parameter in module.parameters())
    module.load_state_dict({key: torch.ones_like(v) for key, v in module.state_dict().items()})
    assert bool((vector == 1.0).all())


def test_moments_are_restored():
    torch.manual_seed(0)
    module = mlp([2, 3, 1], "tanh")
    twin = copy.deepcopy(module)
    one, other = FlatAdam(module, 0.1, 1.0), FlatAdam(twin, 0.1, 1.0)
    for _ in range(5):
        one.step(module(torch.randn(4, 2)).square().mean())
    twin.load_state_dict(module.state_dict())
    other.restore(copy.deepcopy(one.state()))
    for _ in range(5):
        inputs = torch.randn(4, 2)
        one.step(module(inputs).square().mean())
        other.step(twin(inputs).square().mean())
    assert torch.equal(one.vector, other.vector)
