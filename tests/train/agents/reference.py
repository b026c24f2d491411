"""Reference implementations of networks and gradients, to compare the agents with."""

import torch
from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "elu": nn.ELU, "silu": nn.SiLU}


def reference_mlp(parameters, activation):
    """Return an MLP in float64 with these parameters: weight (out, in) and bias of each layer."""
    parameters = [parameter.detach().double().clone() for parameter in parameters]
    layers = []
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        layer = nn.Linear(*weight.T.shape, dtype=torch.float64)
        layer.weight.data, layer.bias.data = weight, bias
        layers += [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class Recorder:
    """Replaces optimizers: records losses and gradients without making a step."""

    def __init__(self, monkeypatch, *optimizers):
        self.losses, self.gradients = [], []
        for optimizer in optimizers:
            monkeypatch.setattr(
                optimizer, "step", lambda loss, optimizer=optimizer: self._record(optimizer, loss)
            )

    def _record(self, optimizer, loss):
        self.losses.append(float(loss.detach()))
        gradients = torch.autograd.grad(loss, optimizer._parameters, retain_graph=True)
        self.gradients.append([gradient.clone() for gradient in gradients])


def gradients(loss, *modules):
    """Return the gradients of a loss with respect to the parameters of modules."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return torch.autograd.grad(loss, parameters, retain_graph=True)


def all_close(actual, expected, atol=1e-5):
    """Return whether gradients are equal up to rounding."""
    return len(actual) == len(expected) and all(
        one.shape == other.shape and torch.allclose(one.double(), other.double(), 1e-4, atol)
        for one, other in zip(actual, expected, strict=True)
    )
