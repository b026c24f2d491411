"""Run an update eagerly, compile it, or record it as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch

from shoal.train._config.agent_settings import Compiling

__all__ = ["Compilation", "CompiledFunction", "resolve_compilation"]

Compilation = Literal["none", "graph", "inductor"]

_WARM_UP_CALLS = 5
"""Calls before the CUDA graph is recorded, in which libraries and optimizers set themselves up."""


def resolve_compilation(setting: Compiling, device: torch.device) -> Compilation:
    """Return the compilation mode that a setting selects on a device; resolves ``auto``."""
    if setting == "auto":
        return "graph" if device.type == "cuda" else "none"
    return setting


class CompiledFunction:
    """A function without arguments that always works on the same tensors.

    On a GPU, the kernels of the function are recorded once as a CUDA graph and replayed by a single
    launch. The function must therefore not read results on the host, and must keep everything that
    changes between calls in tensors.

    Args:
        function: The function to call.
        compilation: How to run it.
        device: The device of its tensors.
        generator: The generator of its random numbers.
    """

    def __init__(
        self,
        function: Callable[[], None],
        compilation: Compilation,
        device: torch.device,
        generator: torch.Generator,
    ) -> None:
        self._function = function
        if compilation == "inductor":
            # The fallback draws random numbers from the given generator.
            self._function = torch.compile(function, options={"fallback_random": True})
        self._uses_graph = compilation != "none" and device.type == "cuda"
        self._generator = generator
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Run the function once."""
        if self._graph is not None:
            self._graph.replay()
            return
        self._calls += 1
        if not self._uses_graph:
            self._function()
        elif self._calls <= _WARM_UP_CALLS:
            side_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side_stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side_stream):
                self._function()
            torch.cuda.current_stream().wait_stream(side_stream)
        else:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self._generator)
            with torch.cuda.graph(graph):
                self._function()
            self._graph = graph
            graph.replay()

    def reset(self) -> None:
        """Discard the CUDA graph. Required after a tensor was replaced by another one."""
        self._graph = None
        self._calls = 0
