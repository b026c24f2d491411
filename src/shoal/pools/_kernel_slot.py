"""One slot of a kernel, with the interface of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import logger

if TYPE_CHECKING:
    from shoal.pools._kernel import KernelPool

__all__ = ["KernelSlot"]

_MISSING = object()
_STATE_METHODS = ("step", "reset", "close")


class KernelSlot:
    """Takes the place of a Gymnasium environment in calls: attributes and rendering.

    Fields of the kernel's state and its parameters are attributes that can be read and set for each
    slot separately. If the kernel replaces an environment of Gymnasium, attributes of that
    environment can be read.
    """

    def __init__(self, pool: KernelPool, slot: int) -> None:
        self._pool = pool
        self._slot = slot
        kernel = pool.kernel
        self.observation_space = kernel.observation_space
        self.action_space = kernel.action_space
        self.metadata = kernel.metadata
        self.render_mode = kernel.render_mode
        self.spec = kernel.spec

    @property
    def unwrapped(self) -> KernelSlot:
        """The slot itself, since it has no wrappers."""
        return self

    @property
    def np_random(self) -> np.random.Generator:
        """A copy of the slot's generator."""
        return self._pool.generator(self._slot)

    @property
    def np_random_seed(self) -> int | None:
        """The seed of the generator, given or drawn at random."""
        return self._pool.seed(self._slot)

    @property
    def state(self) -> Any:
        """The slot's state, as a writable record."""
        return self._pool.state[self._slot]

    def render(self) -> Any:
        """Return an image of the slot; without a render mode, warn and return None."""
        if self.render_mode is None:
            logger.warn(
                "You are calling render method without specifying any render mode. "
                "Make the vector with render_mode='rgb_array'."
            )
            return None
        return self._pool.render([self._slot])[0]

    def has_of_kernel(self, name: str) -> bool:
        """Whether this is a parameter of the kernel, or a field of its state."""
        kernel = self._pool.kernel
        return name in kernel.defaults or name in (kernel.state_dtype.names or ())

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute of the slot."""
        return getattr(self, name)

    def has_wrapper_attr(self, name: str) -> bool:
        """Whether the slot has this attribute."""
        return hasattr(self, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set a field of the state, a parameter, or a new attribute.

        Raises:
            AttributeError: It is another attribute, which the kernel would not read.
        """
        pool, slot = self._pool, self._slot
        if name in (pool.kernel.state_dtype.names or ()):
            pool.state[name][slot] = value
        elif name in pool.kernel.defaults:
            pool.set_parameter(slot, name, pool.kernel.read_parameter(name, value))
        elif name == "state":
            pool.state[slot] = tuple(value)
        elif name in pool.attributes(slot) or (force and not hasattr(self, name)):
            pool.attributes(slot)[name] = value
        else:
            raise AttributeError(
                f"cannot set {name!r}: it is built in to the kernel {pool.kernel.name}; "
                "backend='python' makes a vector of Gymnasium's Python environments"
            )
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        pool, slot = self._pool, self._slot
        if name in (pool.kernel.state_dtype.names or ()):
            value = pool.state[name][slot]
            return value.copy() if isinstance(value, np.ndarray) else value.item()
        if name in pool.kernel.defaults:
            return pool.kernel.show_parameter(name, pool.parameter(slot, name))
        value = pool.attributes(slot).get(name, _MISSING)
        prototype = pool.kernel.prototype
        # Methods that change the state would change that of the prototype, not of the slot.
        if value is _MISSING and prototype is not None and name not in _STATE_METHODS:
            value = getattr(prototype.unwrapped, name, _MISSING)
        if value is _MISSING:
            raise AttributeError(f"a slot of the kernel {pool.kernel.name} has no {name!r}")
        return value
