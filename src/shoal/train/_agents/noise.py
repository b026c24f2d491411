"""Exploration noise, independent for each slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["NormalNoise", "PinkNoise", "make_noise"]


class NormalNoise:
    """Independent standard normal noise.

    Args:
        slots: The number of slots.
        size: The length of an action.
        device: The device of the noise.
        generator: The source of random numbers.
    """

    def __init__(self, slots: int, size: int, device: torch.device, generator: torch.Generator):
        self._shape = slots, size
        self._device, self._generator = device, generator

    def sample(self) -> Tensor:
        """Return the noise of a step, of the shape (slots, size)."""
        return torch.randn(self._shape, device=self._device, generator=self._generator)

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Do nothing: the noise is not correlated over time."""

    def state(self) -> dict[str, Any]:
        """Return an empty state: only the generator has one."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing."""


class PinkNoise:
    """Temporally correlated noise, whose power is inversely proportional to the frequency.

    Each number is standard normal. Every slot has its own sequence, and starts a new one with each
    episode.

    Args:
        slots: The number of slots.
        size: The length of an action.
        device: The device of the noise.
        generator: The source of random numbers.
        period: The length of a sequence; a new sequence follows after it.
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
        self._positions = torch.full((slots,), period, device=device)
        frequencies = torch.fft.rfftfreq(period, device=device)
        frequencies[0] = 1.0 / period
        weights = frequencies.rsqrt()
        # The variance of the inverse FFT. The first coefficient, and for an even period the last
        # one, are real, and contribute half.
        power = 4.0 * weights.square()
        power[0] /= 2.0
        if period % 2 == 0:
            power[-1] /= 2.0
        self._weights = weights * (period / power.sum().sqrt())

    def sample(self) -> Tensor:
        """Return the noise of a step, of the shape (slots, size)."""
        finished = self._positions >= self._period
        if bool(finished.any()):
            self._draw_sequences(finished)
        indices = self._positions[:, None, None].expand(-1, self._sequences.shape[1], 1)
        noise = self._sequences.gather(2, indices).squeeze(2)
        self._positions += 1
        return noise

    def _draw_sequences(self, mask: Tensor) -> None:
        count, size = int(mask.sum()), self._sequences.shape[1]
        shape = 2, count, size, len(self._weights)
        real, imaginary = torch.randn(shape, device=self._device, generator=self._generator)
        imaginary[..., 0] = 0.0
        real[..., 0] *= 2.0**0.5
        if self._period % 2 == 0:
            imaginary[..., -1] = 0.0
            real[..., -1] *= 2.0**0.5
        spectrum = torch.complex(real, imaginary) * self._weights
        self._sequences[mask] = torch.fft.irfft(spectrum, n=self._period, dim=2)
        self._positions[mask] = 0

    def reset(self, ended: npt.NDArray[np.bool_]) -> None:
        """Start new sequences in the slots whose episode ended."""
        if ended.any():
            self._positions[torch.as_tensor(ended, device=self._device)] = self._period

    def state(self) -> dict[str, Any]:
        """Return the sequences and the positions in them; the generator is saved separately."""
        return {"sequences": self._sequences, "places": self._positions}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self._sequences.copy_(state["sequences"])
        self._positions.copy_(state["places"])


def make_noise(
    kind: str,
    slots: int,
    size: int,
    device: torch.device,
    generator: torch.Generator,
    period: int,
) -> NormalNoise | PinkNoise:
    """Create ``normal`` or ``pink`` noise; only pink noise has a period."""
    if kind == "pink":
        return PinkNoise(slots, size, device, generator, period)
    return NormalNoise(slots, size, device, generator)
