"""Parameters as one vector, and the optimiser that steps it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

__all__ = ["Learner", "flattened"]


def flattened(module: nn.Module) -> nn.Parameter:
    """Let the parameters of a module be parts of one vector, and give that.

    What is done to all of them is then done by one operation instead of one for each.
    """
    parameters = list(module.parameters())
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    place = 0
    for parameter in parameters:
        end = place + parameter.numel()
        parameter.data = vector.data[place:end].view_as(parameter)
        place = end
    return vector


class Learner:
    """Adam for all parameters of a module.

    Args:
        module: What learns. Its parameters become parts of ``vector``.
        rate: The learning rate.
        max_norm: How long a gradient may be; longer ones are shortened.
        epsilon: Adam's.
    """

    def __init__(
        self, module: nn.Module, rate: float, max_norm: float | None, epsilon: float = 1e-8
    ) -> None:
        self._parameters = list(module.parameters())
        self.vector = flattened(module)
        self._max_norm = max_norm
        self._epsilon = epsilon
        vector = self.vector.data
        self._mean, self._square = torch.zeros_like(vector), torch.zeros_like(vector)
        self._count = torch.zeros((), device=vector.device)
        # On a GPU a number would be recorded for good, and the rate may change.
        self._rate: float | Tensor = (
            torch.tensor(rate, device=vector.device) if vector.is_cuda else rate
        )

    def descend(self, loss: Tensor) -> None:
        """A step against the gradient of this loss, which is computed for these parameters only."""
        gradients = torch.autograd.grad(loss, self._parameters)
        gradient = torch.cat([part.flatten() for part in gradients])
        if self._max_norm is not None:
            gradient *= (self._max_norm / (gradient.norm() + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            adam(
                [self.vector.data],
                [gradient],
                [self._mean],
                [self._square],
                [],
                [self._count],
                fused=True,
                capturable=gradient.is_cuda,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._rate,
                weight_decay=0.0,
                eps=self._epsilon,
                maximize=False,
            )

    def set_rate(self, rate: float) -> None:
        """Learn so fast from now on."""
        if isinstance(self._rate, Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate

    def forget(self) -> None:
        """Begin anew, with whatever the parameters are."""
        for gathered in (self._mean, self._square, self._count):
            gathered.zero_()

    def state(self) -> dict[str, Any]:
        """What has been gathered of the gradients."""
        return {"mean": self._mean, "square": self._square, "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self._mean.copy_(state["mean"])
        self._square.copy_(state["square"])
        self._count.copy_(state["count"])
