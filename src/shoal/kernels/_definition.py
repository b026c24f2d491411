"""The definition of a kernel: its native part, spaces, parameters and options."""

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
"""A function from the options of a reset and their defaults to a number for each option."""

_RESERVED_NAMES = {
    "parameter": ("num_envs", "render_mode", "max_episode_steps", "wrappers"),
    "option": ("reset_mask",),
}
"""Names with another meaning in :func:`shoal.make` or ``reset``."""

_BOX, _DISCRETE, _MULTI_BINARY, _MULTI_DISCRETE = range(4)


def read_numbers(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:
    """Read the options of a reset; each must be a number and defined by the kernel.

    >>> read_numbers({"high": 1}, {"low": -0.5, "high": 0.5})
    [-0.5, 1.0]
    """
    unknown = [name for name in options if name not in defaults]
    if unknown:
        known = ", ".join(defaults) or "none"
        raise ValueError(f"the kernel has no reset option {unknown[0]!r}; available: {known}")
    return [as_number(options.get(name, value), name) for name, value in defaults.items()]


def check_limit(max_episode_steps: Any) -> None:
    """Raise an error if a time limit is invalid."""
    if max_episode_steps is None:
        return
    if not isinstance(max_episode_steps, int | np.integer) or max_episode_steps < 1:
        raise ValueError(
            f"max_episode_steps must be a positive integer or None, got {max_episode_steps!r}"
        )


def as_number(value: Any, name: str) -> float:
    """Convert a value to a float, or raise an error with its name."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number, got {value!r}") from error


@dataclass(frozen=True)
class Codec:
    """The conversion of a parameter between user-visible values and numbers.

    Args:
        read: Converts a user's value to a number; raises ValueError if the value is invalid.
        show: Converts a number to the user-visible value.
    """

    read: Callable[[Any], float]
    show: Callable[[float], Any]


@dataclass(frozen=True)
class Kernel:
    """A native environment, which :func:`shoal.make` makes vectors of.

    Create kernels with :func:`shoal.kernels.load` or :func:`shoal.kernels.numba_kernel`.

    Args:
        native: The native functions and their description.
        observation_space: The observation space of one slot.
        action_space: The action space of one slot.
        parameters: The parameters that differ from the kernel's defaults, by name.
        codecs: Conversions for parameters whose user-visible values are not numbers.
        max_episode_steps: The number of steps after which an episode is truncated; None for no
            limit.
        metadata: The metadata, as of a Gymnasium environment.
        check_nan: Whether a NaN in an observation or a reward is reported as a failure.
        read_options: The function that reads the options of a reset.
        paint: A function that renders a state if the kernel has no native ``draw``. It is called
            with a slot's state, a record, and returns a uint8 array of shape (height, width, 3).
        prototype: The Gymnasium environment that the kernel replaces; attributes that are neither
            parameters nor state fields are read from it.
        render_mode: ``"rgb_array"`` or None.
        spec: The Gymnasium spec of the environment.
        recipe: A function that creates this kernel again in another process; None if that is
            impossible.
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
                if name in _RESERVED_NAMES[kind]:
                    raise KernelDefinitionError(
                        f"kernel {self.name}: the {kind} name {name!r} is reserved"
                    )
        for leaf in self.description["infos"]:
            if leaf["name"] in FINAL_KEYS or leaf["name"].startswith("_"):
                raise KernelDefinitionError(
                    f"kernel {self.name}: the info name {leaf['name']!r} is reserved"
                )
        check_limit(self.max_episode_steps)
        for name in self.parameters:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise KernelDefinitionError(
                    f"kernel {self.name} has no parameter {name!r}; available: {known}"
                )
        if self.render_mode not in (None, "rgb_array"):
            raise ValueError(
                f"the render_mode of a kernel must be 'rgb_array' or None, got {self.render_mode!r}"
            )
        if self.render_mode is not None and not self.draws:
            raise ValueError(f"kernel {self.name} does not support rendering")

    @cached_property
    def description(self) -> dict[str, Any]:
        """The description from the native part."""
        return self.native.description()

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.description["name"])

    @property
    def draws(self) -> bool:
        """Whether the kernel supports rendering."""
        return bool(self.description["draws"]) or self.paint is not None

    @property
    def defaults(self) -> dict[str, float]:
        """The default values of the parameters."""
        return dict(self.description["parameters"])

    @property
    def values(self) -> dict[str, float]:
        """The values of the parameters, in the kernel's order."""
        return {**self.defaults, **self.parameters}

    @property
    def options(self) -> dict[str, float]:
        """The default values of the reset options."""
        return dict(self.description["options"])

    @cached_property
    def info_space(self) -> spaces.Dict:
        """The space of the info columns."""
        leaves = self.description["infos"]
        return spaces.Dict(
            OrderedDict((leaf["name"], _space_of_leaf(leaf, leaf["name"])) for leaf in leaves)
        )

    @cached_property
    def state_dtype(self) -> np.dtype[Any]:
        """The dtype of a slot's state: a record, or plain bytes if the kernel defines no fields."""
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
        """Return the layouts of observations, actions and infos; check that the kernel matches."""
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
                    f"kernel {self.name}: its {kind} are {expected}, but {layout.space} consists "
                    f"of {found}"
                )
        return layouts

    def read_parameter(self, name: str, value: Any) -> float:
        """Convert a user-visible value of a parameter to a number."""
        codec = self.codecs.get(name)
        return as_number(value, name) if codec is None else codec.read(value)

    def show_parameter(self, name: str, number: float) -> Any:
        """Convert the number of a parameter to its user-visible value."""
        codec = self.codecs.get(name)
        return number if codec is None else codec.show(number)

    def with_arguments(
        self,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **parameters: Any,
    ) -> Kernel:
        """Return a copy of the kernel with the arguments of :func:`shoal.make`."""
        numbers = {name: self.read_parameter(name, value) for name, value in parameters.items()}
        limit = self.max_episode_steps
        return replace(
            self,
            parameters={**self.parameters, **numbers},
            render_mode=render_mode or self.render_mode,
            max_episode_steps=limit if max_episode_steps is None else max_episode_steps,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self  # a kernel is immutable

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise TypeError(f"kernel {self.name} cannot be pickled")
        changes = {
            "parameters": dict(self.parameters),
            "max_episode_steps": self.max_episode_steps,
            "render_mode": self.render_mode,
        }
        return _recreate, (self.recipe, changes)


def _recreate(recipe: Callable[[], Kernel], changes: dict[str, Any]) -> Kernel:
    return replace(recipe(), **changes)


def _space_of_leaf(leaf: dict[str, Any], title: str) -> Space[Any]:
    """Return the space that a leaf of a kernel describes; ``title`` names it in messages."""
    dtype, shape = np.dtype(leaf["dtype"]), tuple(leaf["shape"])
    lows, highs = np.array(leaf["lows"]), np.array(leaf["highs"])
    kind = leaf["space"]
    if kind == _BOX:
        # In C, bounds that are not specified are zero.
        minimum, maximum = _dtype_bounds(dtype)
        if not lows.any() and not highs.any():
            lows, highs = minimum, maximum
        low, high = (
            np.broadcast_to(np.clip(bound, minimum, maximum).reshape(-1), _flat(shape))
            for bound in (lows, highs)
        )
        if (low > high).any():
            raise KernelDefinitionError(f"{title}: a low bound is above its high bound")
        return spaces.Box(
            low.reshape(shape).astype(dtype), high.reshape(shape).astype(dtype), shape, dtype.type
        )
    names = {
        _DISCRETE: ("SHOAL_DISCRETE", "int64", 0),
        _MULTI_BINARY: ("SHOAL_MULTI_BINARY", "int8", len(shape)),
        _MULTI_DISCRETE: ("SHOAL_MULTI_DISCRETE", "int64", 1),
    }
    if kind not in names:
        raise KernelDefinitionError(
            f"{title}: invalid space {kind}, expected a value of shoal_space"
        )
    name, *expected = names[kind]
    if [dtype.name, len(shape)] != expected:
        raise KernelDefinitionError(
            f"{title}: {name} must have dtype {expected[0]} and {expected[1]} dimensions, got "
            f"{dtype} and {len(shape)}"
        )
    if kind == _MULTI_BINARY:
        return spaces.MultiBinary(shape if len(shape) > 1 else shape[0])
    if lows.any() or (highs != np.floor(highs)).any() or (highs < 0).any():
        raise KernelDefinitionError(
            f"{title}: {name} must range from 0 to a non-negative integer, got {lows.tolist()} to "
            f"{highs.tolist()}"
        )
    if kind == _DISCRETE:
        return spaces.Discrete(int(highs[0]) + 1)
    return spaces.MultiDiscrete(np.broadcast_to(highs, shape).astype(np.int64) + 1)


def _flat(shape: tuple[int, ...]) -> tuple[int]:
    return (int(np.prod(shape)),)


def _dtype_bounds(dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if dtype.kind == "f":
        return np.array(-np.inf), np.array(np.inf)
    if dtype.kind == "b":
        return np.array(0), np.array(1)
    limits = np.iinfo(dtype)
    return np.array(limits.min), np.array(limits.max)


def space_of_leaves(leaves: Sequence[dict[str, Any]], kind: str) -> Space[Any]:
    """Return the space that leaves describe: the space of a single leaf, a Tuple, or a Dict."""
    names = [leaf["name"] for leaf in leaves]
    parts = [_space_of_leaf(leaf, f"leaf {k} of the {kind}") for k, leaf in enumerate(leaves)]
    if all(name is not None for name in names):
        if len(set(names)) < len(names):
            raise KernelDefinitionError(f"the {kind} have duplicate names: {names}")
        return spaces.Dict(OrderedDict(zip(names, parts, strict=True)))
    if any(name is not None for name in names):
        raise KernelDefinitionError(f"either all {kind} must have names or none, got {names}")
    return parts[0] if len(parts) == 1 else spaces.Tuple(parts)
