"""Noise of exploration, for each slot by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["NormalNoise", "PinkNoise", "make_noise"]


class NormalNoise:
    """Independent numbers."""

    def __init__(self, slots: int, size: int, device: torch.device, generator: torch.Generator):
        self._shape = slots, size
        self._device, self._generator = device, generator

    def draw(self) -> Tensor:
        """The numbers of a step: (slots, size)."""
        return torch.randn(self._shape, device=self._device, generator=self._generator)

    def begin(self, ended: npt.NDArray[np.bool_]) -> None:
        """Nothing is carried over from one episode to the next."""

    def state(self) -> dict[str, Any]:
        """There is none."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """There is none."""


class PinkNoise:
    """Numbers whose power falls with the frequency, so that what a slot does keeps a direction.

    Each is normal with a deviation of 1. A slot has a sequence of its own, which begins anew with
    each of its episodes.

    Args:
        slots: How many slots.
        size: How many numbers each has.
        device: Where they are wanted.
        generator: Where they are drawn from.
        period: How long a sequence is; then another one follows.
    """

    def __init__(
        self,
        slots: int,
        size: int,
        device: torch.device,
        generator: torch.Generator,
        period: int = 256,
    ) -> None:
        self._device, self._generator = device, generator
        self._period = period
        self._sequences = torch.zeros(slots, size, period, device=device)
        self._places = torch.full((slots,), period, device=device)
        frequencies = torch.fft.rfftfreq(period, device=device)
        frequencies[0] = 1.0 / period
        weights = frequencies.rsqrt()
        # The variance of the sum of all waves; the first and, where there is one, the middle one
        # have no phase.
        power = 4.0 * weights.square()
        power[0] /= 2.0
        if period % 2 == 0:
            power[-1] /= 2.0
        self._weights = weights * (period / power.sum().sqrt())

    def draw(self) -> Tensor:
        """The numbers of a step: (slots, size)."""
        over = self._places >= self._period
        if bool(over.any()):
            self._renew(over)
        places = self._places[:, None, None].expand(-1, self._sequences.shape[1], 1)
        drawn = self._sequences.gather(2, places).squeeze(2)
        self._places += 1
        return drawn

    def _renew(self, which: Tensor) -> None:
        count, size = int(which.sum()), self._sequences.shape[1]
        shape = 2, count, size, len(self._weights)
        real, imaginary = torch.randn(shape, device=self._device, generator=self._generator)
        imaginary[..., 0] = 0.0
        real[..., 0] *= 2.0**0.5
        if self._period % 2 == 0:
            imaginary[..., -1] = 0.0
            real[..., -1] *= 2.0**0.5
        spectrum = torch.complex(real, imaginary) * self._weights
        self._sequences[which] = torch.fft.irfft(spectrum, n=self._period, dim=2)
        self._places[which] = 0

    def begin(self, ended: npt.NDArray[np.bool_]) -> None:
        """New sequences where an episode has ended."""
        if ended.any():
            self._places[torch.as_tensor(ended, device=self._device)] = self._period

    def state(self) -> dict[str, Any]:
        """What the next numbers depend on, besides the generator."""
        return {"sequences": self._sequences, "places": self._places}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state` was taken."""
        self._sequences.copy_(state["sequences"])
        self._places.copy_(state["places"])


def make_noise(
    kind: str,
    slots: int,
    size: int,
    device: torch.device,
    generator: torch.Generator,
    period: int,
) -> NormalNoise | PinkNoise:
    """Noise of a kind: ``normal`` or ``pink``."""
    if kind == "pink":
        return PinkNoise(slots, size, device, generator, period)
    return NormalNoise(slots, size, device, generator)
