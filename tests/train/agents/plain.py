"""Networks and gradients in their plainest form, to compare those of agents with."""

import torch
from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "elu": nn.ELU, "silu": nn.SiLU}


def plain_mlp(parameters, activation):
    """Layers one after the other, of weights (out, in) and biases in their order; in 64 bits."""
    parameters = [parameter.detach().double().clone() for parameter in parameters]
    layers = []
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        layer = nn.Linear(*weight.T.shape, dtype=torch.float64)
        layer.weight.data, layer.bias.data = weight, bias
        layers += [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class Recorder:
    """Stands in for the optimiser: notes losses and their gradients, and steps nothing."""

    def __init__(self, monkeypatch, *learners):
        self.losses, self.gradients = [], []
        for learner in learners:
            monkeypatch.setattr(learner, "descend", lambda loss, its=learner: self._note(its, loss))

    def _note(self, learner, loss):
        self.losses.append(float(loss.detach()))
        found = torch.autograd.grad(loss, learner._parameters, retain_graph=True)
        self.gradients.append([part.clone() for part in found])


def gradients(loss, *modules):
    """Those of a loss, in the order of the parameters."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return torch.autograd.grad(loss, parameters, retain_graph=True)


def all_close(found, expected, atol=1e-5):
    """Whether gradients are the same but for rounding."""
    return len(found) == len(expected) and all(
        one.shape == other.shape and torch.allclose(one.double(), other.double(), 1e-4, atol)
        for one, other in zip(found, expected, strict=True)
    )
