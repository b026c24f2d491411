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

__all__ = ["Dueling", "RunningScale", "Scaled", "Squashed", "Temperature", "TwinValues", "mlp"]

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    # In its place: memory that is taken anew costs more than the operation.
    "relu": partial(nn.ReLU, inplace=True),
    "tanh": nn.Tanh,
    "elu": partial(nn.ELU, inplace=True),
    "silu": nn.SiLU,
}


_FEW_CHOICES = 64


def mlp(sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Layers of these widths with an activation between them, and none at the end."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), _ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class Scaled(nn.Module):
    """Divides observations by constants, so that a network sees numbers of about one."""

    factor: Tensor

    def __init__(self, scale: npt.NDArray[np.float32]) -> None:
        super().__init__()
        self.register_buffer("factor", torch.as_tensor(1.0 / scale))

    def forward(self, observations: Tensor) -> Tensor:
        """Observations as networks see them."""
        return observations * self.factor


class RunningScale(Scaled):
    """Brings observations to a mean of 0 and a deviation of 1, as far as they are known."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, scale: npt.NDArray[np.float32]) -> None:
        super().__init__(scale)
        # float64: a count of 1e9 must still grow by one
        self.register_buffer("mean", torch.zeros(len(scale), dtype=torch.float64))
        self.register_buffer("variance", torch.ones(len(scale), dtype=torch.float64))
        self.register_buffer("count", torch.full((), 1e-4, dtype=torch.float64))

    def forward(self, observations: Tensor) -> Tensor:
        """Observations as networks see them."""
        seen = super().forward(observations)
        seen = (seen - self.mean.float()) * (self.variance.float() + 1e-8).rsqrt()
        return seen.clamp(-10.0, 10.0)

    @torch.no_grad()
    def learn(self, observations: Tensor) -> None:
        """Take these into account."""
        seen = super().forward(observations).double()
        variance, mean = torch.var_mean(seen, 0, correction=0)
        total = self.count + len(seen)
        apart = mean - self.mean
        share = len(seen) / total
        spread = self.variance * (1.0 - share) + variance * share
        self.variance.copy_(spread + apart.square() * share * (1.0 - share))
        self.mean += apart * share
        self.count.copy_(total)


class Dueling(nn.Module):
    """The value of each choice, as that of the state and what the choice adds to it.

    Args:
        inputs: How many numbers a state has.
        hidden: The widths of the hidden layers.
        choices: How many choices there are.
        activation: The name of one.
        dueling: Whether the two are told apart; else the values are those of the last layer.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], choices: int, activation: str, dueling: bool
    ) -> None:
        super().__init__()
        self.layers = mlp([inputs, *hidden, choices + int(dueling)], activation)
        self._dueling = dueling
        # What a state is worth, and what choices add to that beyond what they add on average: a
        # linear map of what the last layer gives, which for few choices is quickest as such.
        joined: Tensor | None = None
        if dueling and choices <= _FEW_CHOICES:
            joined = torch.cat([torch.ones(1, choices), torch.eye(choices) - 1.0 / choices])
        self.register_buffer("_joined", joined, persistent=False)

    _joined: Tensor | None

    def forward(self, states: Tensor) -> Tensor:
        """(rows, choices)."""
        out: Tensor = self.layers(states)
        if not self._dueling:
            return out
        if self._joined is not None:
            return out @ self._joined
        value, added = out[:, :1], out[:, 1:]
        return value + added - added.mean(1, keepdim=True)


class TwinValues(nn.Module):
    """Two estimates of the value of a state and an action, computed side by side."""

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        self._activation = _ACTIVATIONS[activation]()
        sizes = [inputs, *hidden, 1]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for before, after in pairwise(sizes):
            bound = 1.0 / math.sqrt(before)  # as torch begins its own layers
            self.weights.append(nn.Parameter(torch.empty(2, before, after).uniform_(-bound, bound)))
            self.biases.append(nn.Parameter(torch.empty(2, 1, after).uniform_(-bound, bound)))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """(2, rows)."""
        inputs = torch.cat([states, actions], 1)
        out = inputs.expand(2, *inputs.shape)
        last = len(self.weights) - 1
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            out = torch.baddbmm(bias, out, weight)
            if number < last:
                out = self._activation(out)
        return out.squeeze(2)


class Squashed(nn.Module):
    """A distribution of actions between -1 and 1: a normal one, put through tanh."""

    def __init__(self, inputs: int, hidden: Sequence[int], size: int, activation: str) -> None:
        super().__init__()
        self.layers = mlp([inputs, *hidden, 2 * size], activation)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Means and logarithms of deviations, before tanh."""
        mean, log_std = self.layers(states).chunk(2, 1)
        return mean, log_std.clamp(-20.0, 2.0)

    def sample(self, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions drawn with this noise, and the logarithms of their densities."""
        mean, log_std = self(states)
        wanted = mean + log_std.exp() * noise
        density = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
        # The logarithm of tanh's slope, in a form that does not overflow.
        slope = 2.0 * (math.log(2.0) - wanted - nn.functional.softplus(-2.0 * wanted))
        return wanted.tanh(), (density - slope).sum(1)


class Temperature(nn.Module):
    """How much randomness is worth, by its logarithm."""

    def __init__(self, log_alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(log_alpha))
