"""How an update is run: as it is written, compiled, or recorded once as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from shoal.train._config.agent_settings import Compiling

__all__ = ["Repeated", "chosen_compilation"]

_WARM = 5
"""So many runs come before one is recorded: libraries and optimisers set themselves up in them."""


def chosen_compilation(
    wanted: Compiling, device: torch.device
) -> Literal["none", "graph", "inductor"]:
    """What ``auto`` means on a device."""
    if wanted == "auto":
        return "graph" if device.type == "cuda" else "none"
    return wanted


class Repeated:
    """A function without arguments that is called again and again, always on the same tensors.

    On a GPU its work is recorded once and then replayed: launched by one call, not by hundreds. It
    must not look at results, and must keep all that changes in tensors.

    Args:
        function: What is called.
        compilation: How.
        device: Where its tensors are.
        generator: Of the random numbers that it draws.
    """

    def __init__(
        self,
        function: Callable[[], None],
        compilation: Literal["none", "graph", "inductor"],
        device: torch.device,
        generator: torch.Generator,
    ) -> None:
        self._function = function
        if compilation == "inductor":
            # Random numbers stay those of the generator that was given.
            self._function = torch.compile(function, options={"fallback_random": True})
        self._records = compilation != "none" and device.type == "cuda"
        self._generator = generator
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Run it once."""
        if self._graph is not None:
            self._graph.replay()
            return
        self._calls += 1
        if not self._records:
            self._function()
        elif self._calls <= _WARM:
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self._function()
            torch.cuda.current_stream().wait_stream(aside)
        else:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self._generator)
            with torch.cuda.graph(graph):
                self._function()
            self._graph = graph
            graph.replay()

    def forget(self) -> None:
        """Record anew: tensors were put elsewhere."""
        self._graph = None
        self._calls = 0
