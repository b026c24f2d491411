"""What a kernel is, as Python sees it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Env, Space, spaces
from gymnasium.envs.registration import EnvSpec

from shoal import _native
from shoal._spaces import Layout
from shoal._types import FINAL_KEYS
from shoal.errors import KernelDefinitionError

__all__ = ["Codec", "Kernel", "ReadOptions", "read_numbers", "space_of_leaves"]

ReadOptions = Callable[[dict[str, Any], dict[str, float]], list[float]]
"""From the options of a reset, and the values of those that are not given, to a number for each."""

_TAKEN = {
    "parameter": ("num_envs", "render_mode", "max_episode_steps", "wrappers"),
    "option": ("reset_mask",),
}
"""Names that :func:`shoal.make` and ``reset`` understand otherwise."""

_BOX, _DISCRETE, _MULTI_BINARY, _MULTI_DISCRETE = range(4)


def read_numbers(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:
    """The options of a reset, each of which must be a number that the kernel knows.

    >>> read_numbers({"high": 1}, {"low": -0.5, "high": 0.5})
    [-0.5, 1.0]
    """
    unknown = [name for name in options if name not in defaults]
    if unknown:
        known = ", ".join(defaults) or "none"
        raise ValueError(f"the kernel has no reset option {unknown[0]!r}; those it has: {known}")
    return [as_number(options.get(name, value), name) for name, value in defaults.items()]


def check_limit(max_episode_steps: Any) -> None:
    """Refuse a time limit that is none."""
    if max_episode_steps is None:
        return
    if not isinstance(max_episode_steps, int | np.integer) or max_episode_steps < 1:
        raise ValueError(
            f"max_episode_steps must be a positive integer or None, got {max_episode_steps!r}"
        )


def as_number(value: Any, name: str) -> float:
    """A value as a float, or an error that says which one is none."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number, got {value!r}") from error


@dataclass(frozen=True)
class Codec:
    """How users name the values of a parameter that is more than a number.

    Args:
        read: From what a user says to a number; raises ValueError where it is none of the values.
        show: The way back.
    """

    read: Callable[[Any], float]
    show: Callable[[float], Any]


@dataclass(frozen=True)
class Kernel:
    """A native environment; :func:`shoal.make` makes vectors of it.

    :func:`shoal.kernels.load` loads one, and :func:`shoal.kernels.numba_kernel` compiles one.

    Args:
        native: The functions and what they say of themselves.
        observation_space: Of one slot.
        action_space: Of one slot.
        parameters: Those that differ from the kernel's own values, by name.
        codecs: For parameters whose values have names of their own.
        max_episode_steps: When episodes are truncated; None for never.
        metadata: As that of a Gymnasium environment.
        check_nan: Whether a NaN in an observation or a reward is reported as a failure.
        read_options: How the options of a reset are read.
        paint: A picture of a state, where the kernel draws none itself: a function from the slot's
            state, a record, to an array of (height, width, 3) bytes.
        prototype: An environment of Gymnasium's that the kernel stands in for; attributes that the
            kernel does not know are read from it.
        render_mode: ``"rgb_array"`` or None.
        spec: Under which name Gymnasium knows the environment, and with what arguments.
        recipe: Makes this kernel anew, in another process; None where that cannot be.
    """

    native: _native.Kernel
    observation_space: Space[Any]
    action_space: Space[Any]
    parameters: Mapping[str, float] = field(default_factory=dict)
    codecs: Mapping[str, Codec] = field(default_factory=dict)
    max_episode_steps: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    check_nan: bool = True
    read_options: ReadOptions = read_numbers
    paint: Callable[[Any], npt.NDArray[np.uint8]] | None = None
    prototype: Env[Any, Any] | None = None
    render_mode: str | None = None
    spec: EnvSpec | None = None
    recipe: Callable[[], Kernel] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for kind, names in (("parameter", self.defaults), ("option", self.options)):
            for name in names:
                if name in _TAKEN[kind]:
                    raise KernelDefinitionError(
                        f"kernel {self.name}: no {kind} can be called {name!r}, which means "
                        "something else"
                    )
        for leaf in self.description["infos"]:
            if leaf["name"] in FINAL_KEYS or leaf["name"].startswith("_"):
                raise KernelDefinitionError(
                    f"kernel {self.name}: no info can be called {leaf['name']!r}"
                )
        check_limit(self.max_episode_steps)
        for name in self.parameters:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise KernelDefinitionError(
                    f"kernel {self.name} has no parameter {name!r}; those it has: {known}"
                )
        if self.render_mode not in (None, "rgb_array"):
            raise ValueError(
                f"a kernel renders 'rgb_array' or nothing, got render_mode={self.render_mode!r}"
            )
        if self.render_mode is not None and not self.draws:
            raise ValueError(f"kernel {self.name} draws no pictures")

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the native part says of itself."""
        return self.native.description()

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.description["name"])

    @property
    def draws(self) -> bool:
        """Whether there are pictures of it."""
        return bool(self.description["draws"]) or self.paint is not None

    @property
    def defaults(self) -> dict[str, float]:
        """The parameters as the kernel has them."""
        return dict(self.description["parameters"])

    @property
    def values(self) -> dict[str, float]:
        """The parameters, in the kernel's order."""
        return {**self.defaults, **self.parameters}

    @property
    def options(self) -> dict[str, float]:
        """The options that a reset takes, with the values that they have otherwise."""
        return dict(self.description["options"])

    @cached_property
    def info_space(self) -> spaces.Dict:
        """What the columns of the infos hold."""
        leaves = self.description["infos"]
        return spaces.Dict(
            OrderedDict((leaf["name"], _space_of_leaf(leaf, leaf["name"])) for leaf in leaves)
        )

    @cached_property
    def state_dtype(self) -> np.dtype[Any]:
        """The state of a slot as a NumPy record; bytes where the kernel names no fields."""
        fields, size = self.description["fields"], self.description["state_bytes"]
        if not fields:
            return np.dtype((np.void, max(size, 1)))
        return np.dtype(
            {
                "names": [leaf["name"] for leaf in fields],
                "formats": [(leaf["dtype"], leaf["shape"]) for leaf in fields],
                "offsets": [leaf["offset"] for leaf in fields],
                "itemsize": size,
            }
        )

    def layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of observations, actions and infos, which are the kernel's own."""
        kinds = ("observations", "actions", "infos")
        layouts = (
            Layout.of(self.observation_space),
            Layout.of(self.action_space),
            Layout.of(self.info_space),
        )
        for kind, layout in zip(kinds, layouts, strict=True):
            leaves = self.description[kind]
            found = [(leaf.dtype.name, leaf.shape) for leaf in layout.leaves]
            expected = [(leaf["dtype"], tuple(leaf["shape"])) for leaf in leaves]
            if found != expected or layout.objects:
                raise KernelDefinitionError(
                    f"kernel {self.name}: its {kind} are {expected}, but the arrays of "
                    f"{layout.space} are {found}"
                )
        return layouts

    def read_parameter(self, name: str, value: Any) -> float:
        """A parameter's value as the kernel has it."""
        codec = self.codecs.get(name)
        return as_number(value, name) if codec is None else codec.read(value)

    def show_parameter(self, name: str, number: float) -> Any:
        """A parameter's value as users have it."""
        codec = self.codecs.get(name)
        return number if codec is None else codec.show(number)

    def with_arguments(
        self,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **parameters: Any,
    ) -> Kernel:
        """The kernel with what a user has said when making a vector of it."""
        numbers = {name: self.read_parameter(name, value) for name, value in parameters.items()}
        limit = self.max_episode_steps
        return replace(
            self,
            parameters={**self.parameters, **numbers},
            render_mode=render_mode or self.render_mode,
            max_episode_steps=limit if max_episode_steps is None else max_episode_steps,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self  # nothing about it ever changes

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise TypeError(f"kernel {self.name} cannot be pickled")
        changed = {
            "parameters": dict(self.parameters),
            "max_episode_steps": self.max_episode_steps,
            "render_mode": self.render_mode,
        }
        return _made_again, (self.recipe, changed)


def _made_again(recipe: Callable[[], Kernel], changed: dict[str, Any]) -> Kernel:
    return replace(recipe(), **changed)


def _space_of_leaf(leaf: dict[str, Any], what: str) -> Space[Any]:
    """The space that a leaf of a kernel describes; ``what`` it is one of, for messages."""
    dtype, shape = np.dtype(leaf["dtype"]), tuple(leaf["shape"])
    lows, highs = np.array(leaf["lows"]), np.array(leaf["highs"])
    kind = leaf["space"]
    if kind == _BOX:
        # In C, what is not written down is zero.
        least, most = _widest(dtype)
        if not lows.any() and not highs.any():
            lows, highs = least, most
        low, high = (
            np.broadcast_to(np.clip(bound, least, most).reshape(-1), _flat(shape))
            for bound in (lows, highs)
        )
        if (low > high).any():
            raise KernelDefinitionError(f"{what}: a low bound lies above the high one")
        return spaces.Box(
            low.reshape(shape).astype(dtype), high.reshape(shape).astype(dtype), shape, dtype.type
        )
    names = {
        _DISCRETE: ("SHOAL_DISCRETE", "int64", 0),
        _MULTI_BINARY: ("SHOAL_MULTI_BINARY", "int8", len(shape)),
        _MULTI_DISCRETE: ("SHOAL_MULTI_DISCRETE", "int64", 1),
    }
    if kind not in names:
        raise KernelDefinitionError(f"{what}: there is no space number {kind}")
    name, *expected = names[kind]
    if [dtype.name, len(shape)] != expected:
        raise KernelDefinitionError(
            f"{what}: {name} goes with dtype {expected[0]} and {expected[1]} dimensions, got dtype "
            f"{dtype} and {len(shape)}"
        )
    if kind == _MULTI_BINARY:
        return spaces.MultiBinary(shape if len(shape) > 1 else shape[0])
    if lows.any() or (highs != np.floor(highs)).any() or (highs < 0).any():
        raise KernelDefinitionError(
            f"{what}: {name} counts from 0 to a whole number, got {lows.tolist()} to "
            f"{highs.tolist()}"
        )
    if kind == _DISCRETE:
        return spaces.Discrete(int(highs[0]) + 1)
    return spaces.MultiDiscrete(np.broadcast_to(highs, shape).astype(np.int64) + 1)


def _flat(shape: tuple[int, ...]) -> tuple[int]:
    return (int(np.prod(shape)),)


def _widest(dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if dtype.kind == "f":
        return np.array(-np.inf), np.array(np.inf)
    if dtype.kind == "b":
        return np.array(0), np.array(1)
    limits = np.iinfo(dtype)
    return np.array(limits.min), np.array(limits.max)


def space_of_leaves(leaves: Sequence[dict[str, Any]], what: str) -> Space[Any]:
    """The space that leaves describe: one by itself, a Tuple, or a Dict where they have names."""
    names = [leaf["name"] for leaf in leaves]
    parts = [_space_of_leaf(leaf, f"number {k} of the {what}") for k, leaf in enumerate(leaves)]
    if all(name is not None for name in names):
        if len(set(names)) < len(names):
            raise KernelDefinitionError(f"two of the {what} have the same name: {names}")
        return spaces.Dict(OrderedDict(zip(names, parts, strict=True)))
    if any(name is not None for name in names):
        raise KernelDefinitionError(f"either all of the {what} have names or none, got {names}")
    return parts[0] if len(parts) == 1 else spaces.Tuple(parts)
