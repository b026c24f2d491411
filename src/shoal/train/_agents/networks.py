"""The networks of the agents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

__all__ = [
    "DuelingNetwork",
    "NormalizeObservations",
    "ScaleObservations",
    "SquashedGaussian",
    "Temperature",
    "TwinQNetwork",
    "mlp",
]

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    # In place where possible: allocating the output costs more than the operation.
    "relu": partial(nn.ReLU, inplace=True),
    "tanh": nn.Tanh,
    "elu": partial(nn.ELU, inplace=True),
    "silu": nn.SiLU,
}

_MAX_MATRIX_CHOICES = 64


def mlp(sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Return linear layers of these widths, with an activation after all but the last one."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), _ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class ScaleObservations(nn.Module):
    """Divide observations by constants, so that the network's inputs are of the order of one.

    Args:
        scale: The divisor of each element.
    """

    factor: Tensor

    def __init__(self, scale: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("factor", torch.as_tensor(1.0 / scale))

    def forward(self, observations: Tensor) -> Tensor:
        """Return scaled observations."""
        return observations * self.factor


class NormalizeObservations(ScaleObservations):
    """Normalize observations by their running mean and standard deviation.

    Args:
        scale: Observations are divided by this scale first.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, scale: npt.NDArray[np.float32]) -> None:
        super().__init__(scale)
        # float64: a count of 1e9 must still be able to grow by one.
        self.register_buffer("mean", torch.zeros(len(scale), dtype=torch.float64))
        self.register_buffer("variance", torch.ones(len(scale), dtype=torch.float64))
        self.register_buffer("count", torch.full((), 1e-4, dtype=torch.float64))

    def forward(self, observations: Tensor) -> Tensor:
        """Return normalized observations, clipped to [-10, 10]."""
        scaled = super().forward(observations)
        scaled = (scaled - self.mean.float()) * (self.variance.float() + 1e-8).rsqrt()
        return scaled.clamp(-10.0, 10.0)

    @torch.no_grad()
    def update(self, observations: Tensor) -> None:
        """Update the running statistics with these observations."""
        scaled = super().forward(observations).double()
        batch_variance, batch_mean = torch.var_mean(scaled, 0, correction=0)
        total = self.count + len(scaled)
        delta = batch_mean - self.mean
        weight = len(scaled) / total
        within = self.variance * (1.0 - weight) + batch_variance * weight
        self.variance.copy_(within + delta.square() * weight * (1.0 - weight))
        self.mean += delta * weight
        self.count.copy_(total)


class DuelingNetwork(nn.Module):
    """Q-values of discrete actions, as the sum of a state value and an advantage.

    Args:
        inputs: The length of an observation.
        hidden: The widths of the hidden layers.
        choices: The number of actions.
        activation: The name of the activation function.
        dueling: Whether to split values and advantages; otherwise the last layer gives Q-values.
    """

    _dueling_matrix: Tensor | None

    def __init__(
        self, inputs: int, hidden: Sequence[int], choices: int, activation: str, dueling: bool
    ) -> None:
        super().__init__()
        self.layers = mlp([inputs, *hidden, choices + int(dueling)], activation)
        self._dueling = dueling
        # value + advantage - mean(advantage) is linear in the last layer's output. For few actions
        # a multiplication by its matrix is fastest.
        matrix: Tensor | None = None
        if dueling and choices <= _MAX_MATRIX_CHOICES:
            matrix = torch.cat([torch.ones(1, choices), torch.eye(choices) - 1.0 / choices])
        self.register_buffer("_dueling_matrix", matrix, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Return Q-values of the shape (rows, choices)."""
        out: Tensor = self.layers(states)
        if not self._dueling:
            return out
        if self._dueling_matrix is not None:
            return out @ self._dueling_matrix
        value, advantage = out[:, :1], out[:, 1:]
        return value + advantage - advantage.mean(1, keepdim=True)


class TwinQNetwork(nn.Module):
    """Two independent Q-networks for continuous actions, computed as one batched network.

    Args:
        inputs: The length of an observation plus that of an action.
        hidden: The widths of the hidden layers.
        activation: The name of the activation function.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        self._activation = _ACTIVATIONS[activation]()
        sizes = [inputs, *hidden, 1]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for fan_in, fan_out in pairwise(sizes):
            bound = 1.0 / math.sqrt(fan_in)  # the initialization of nn.Linear
            weight = torch.empty(2, fan_in, fan_out).uniform_(-bound, bound)
            self.weights.append(nn.Parameter(weight))
            self.biases.append(nn.Parameter(torch.empty(2, 1, fan_out).uniform_(-bound, bound)))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """Return the Q-values of both networks, of the shape (2, rows)."""
        inputs = torch.cat([states, actions], 1)
        out = inputs.expand(2, *inputs.shape)
        last = len(self.weights) - 1
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            out = torch.baddbmm(bias, out, weight)
            if number < last:
                out = self._activation(out)
        return out.squeeze(2)


class SquashedGaussian(nn.Module):
    """A policy network: a Gaussian distribution squashed to (-1, 1) by tanh.

    Args:
        inputs: The length of an observation.
        hidden: The widths of the hidden layers.
        size: The length of an action.
        activation: The name of the activation function.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], size: int, activation: str) -> None:
        super().__init__()
        self.layers = mlp([inputs, *hidden, 2 * size], activation)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the log standard deviation before tanh."""
        mean, log_std = self.layers(states).chunk(2, 1)
        return mean, log_std.clamp(-20.0, 2.0)

    def sample(self, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions for this standard normal noise, and their log-probabilities."""
        mean, log_std = self(states)
        unsquashed = mean + log_std.exp() * noise
        log_prob = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
        # log(1 - tanh(x)^2), in a form that does not overflow.
        log_slope = 2.0 * (math.log(2.0) - unsquashed - nn.functional.softplus(-2.0 * unsquashed))
        return unsquashed.tanh(), (log_prob - log_slope).sum(1)


class Temperature(nn.Module):
    """The entropy temperature of SAC, stored as its logarithm.

    Args:
        log_alpha: The initial logarithm.
    """

    def __init__(self, log_alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(log_alpha))
