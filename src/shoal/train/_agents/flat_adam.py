"""Adam on one flat vector that holds all parameters of a module."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

__all__ = ["FlatAdam", "flatten_parameters"]


def flatten_parameters(module: nn.Module) -> nn.Parameter:
    """Make the parameters of a module views of one flat vector, and return the vector.

    An operation on all parameters is then a single operation instead of one for each parameter.
    """
    parameters = list(module.parameters())
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vector.data[start:end].view_as(parameter)
        start = end
    return vector


class FlatAdam:
    """The Adam optimizer for all parameters of a module.

    Args:
        module: The module to optimize. Its parameters become views of ``vector``.
        learning_rate: The learning rate.
        max_grad_norm: Gradients with a larger norm are clipped to this norm; None for no clipping.
        epsilon: Adam's epsilon.
    """

    def __init__(
        self,
        module: nn.Module,
        learning_rate: float,
        max_grad_norm: float | None,
        epsilon: float = 1e-8,
    ) -> None:
        self._parameters = list(module.parameters())
        self.vector = flatten_parameters(module)
        self._max_grad_norm = max_grad_norm
        self._epsilon = epsilon
        vector = self.vector.data
        self._exp_avg, self._exp_avg_sq = torch.zeros_like(vector), torch.zeros_like(vector)
        self._step_count = torch.zeros((), device=vector.device)
        # A CUDA graph would record a Python float as a constant, but the rate may change.
        self._learning_rate: float | Tensor = (
            torch.tensor(learning_rate, device=vector.device) if vector.is_cuda else learning_rate
        )

    def step(self, loss: Tensor) -> None:
        """Make a gradient step; the gradient is computed for the module's parameters only."""
        gradients = torch.autograd.grad(loss, self._parameters)
        gradient = torch.cat([part.flatten() for part in gradients])
        if self._max_grad_norm is not None:
            gradient *= (self._max_grad_norm / (gradient.norm() + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            adam(
                [self.vector.data],
                [gradient],
                [self._exp_avg],
                [self._exp_avg_sq],
                [],
                [self._step_count],
                fused=True,
                capturable=gradient.is_cuda,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._learning_rate,
                weight_decay=0.0,
                eps=self._epsilon,
                maximize=False,
            )

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the following steps."""
        if isinstance(self._learning_rate, Tensor):
            self._learning_rate.fill_(learning_rate)
        else:
            self._learning_rate = learning_rate

    def reset(self) -> None:
        """Reset the moments and the step count; the parameters stay as they are."""
        for tensor in (self._exp_avg, self._exp_avg_sq, self._step_count):
            tensor.zero_()

    def state(self) -> dict[str, Any]:
        """Return the moments and the step count."""
        return {"mean": self._exp_avg, "square": self._exp_avg_sq, "count": self._step_count}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self._exp_avg.copy_(state["mean"])
        self._exp_avg_sq.copy_(state["square"])
        self._step_count.copy_(state["count"])
