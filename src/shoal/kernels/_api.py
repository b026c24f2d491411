"""``shoal.kernel``: how users bring kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gymnasium import Space

from shoal.kernels._definition import Kernel
from shoal.kernels._numba_kernels import compile_kernel
from shoal.kernels._shared_library import include_dir, load

__all__ = ["KernelMaker", "kernel"]


class KernelMaker:
    """Makes a kernel of a class whose functions numba compiles, or loads one from a library."""

    def __call__(
        self,
        *,
        observation_space: Space[Any],
        action_space: Space[Any],
        state: Any,
        infos: Mapping[str, Any] | None = None,
        parameters: Mapping[str, float] | None = None,
        options: Mapping[str, float] | None = None,
        max_episode_steps: int | None = None,
        check_nan: bool = True,
    ) -> Callable[[type], Kernel]:
        """Decorate a class with two functions, each of which speaks of one slot.

        ``reset(state, random, parameters, options, observation)`` begins an episode, and
        ``step(state, random, parameters, action, observation)`` takes a step and returns (reward,
        terminated, truncated). Both write the observation. They are static methods, and keep to
        what numba can compile; what they raise is reported as a failure of the slot. A third one,
        ``render(state)``, is plain Python and returns a picture: an array of (height, width, 3)
        bytes.

        What they are given: ``state``, ``parameters`` and ``options`` are records with the fields
        that the decorator names; ``random`` is what the functions ``random_double``,
        ``random_uniform`` and ``random_below`` of :mod:`shoal.kernels` want. Observations and
        actions are arrays; of a Tuple space they are tuples of arrays, and of a Dict space tuples
        with names: ``action.push``. A single number is an array of one element where it is written,
        and a number where it is read. With ``infos`` there is one argument more, in which those are
        written by name: ``info.energy[0] = 1.0``. What is not written holds anything. (Gymnasium
        sorts the keys of a Dict space that is made of a dict; numba checks no index, unless
        ``NUMBA_BOUNDSCHECK=1`` is set.)

        Args:
            observation_space: Of one slot; of arrays with a fixed shape.
            action_space: Of one slot, likewise.
            state: What a slot remembers, as the dtype of a NumPy record: ``[("speed", "f8")]``.
            infos: Infos by name: a dtype, or a dtype and a shape.
            parameters: Numbers that are chosen when a vector is made, and what they are otherwise.
            options: Numbers that ``reset`` takes as its options, and what they are otherwise.
            max_episode_steps: When episodes are truncated.
            check_nan: Whether a NaN in an observation or a reward is reported as a failure.
        """

        def compiled(namespace: type) -> Kernel:
            return compile_kernel(
                namespace.__name__,
                vars(namespace),
                observation_space=observation_space,
                action_space=action_space,
                state=state,
                infos=infos or {},
                parameters=parameters or {},
                options=options or {},
                max_episode_steps=max_episode_steps,
                check_nan=check_nan,
            )

        return compiled

    def load(self, path: str | Path, *, check_nan: bool = True) -> Kernel:
        """Load a kernel from a shared library; see :func:`shoal.kernels._shared_library.load`."""
        return load(path, check_nan=check_nan)

    def include_dir(self) -> str:
        """The folder of ``shoal_kernel.h``, for the compiler's ``-I``."""
        return include_dir()


kernel = KernelMaker()
"""``@shoal.kernel(...)`` and ``shoal.kernel.load(...)``."""
