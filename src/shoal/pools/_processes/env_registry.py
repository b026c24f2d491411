"""Registers environments of one process in another process."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import cloudpickle
import gymnasium

__all__ = ["register_specs", "registered_specs"]

ENTRY_POINTS = ("entry_point", "vector_entry_point")


def registered_specs() -> list[bytes]:
    """Return the pickled specs of all registered environments except Gymnasium's.

    A spec that cannot be pickled, for instance because its entry point holds a lock, is left out:
    in a worker, Gymnasium then raises that the environment does not exist.
    """
    pickled = []
    for spec in gymnasium.registry.values():
        if isinstance(spec.entry_point, str) and spec.entry_point.startswith("gymnasium.envs."):
            continue
        packed = copy.copy(spec)
        try:
            for name in ENTRY_POINTS:
                if callable(entry_point := getattr(spec, name)):
                    setattr(packed, name, cloudpickle.dumps(entry_point))
            pickled.append(bytes(cloudpickle.dumps(packed)))
        except Exception:
            continue
    return pickled


def register_specs(specs: Sequence[bytes]) -> None:
    """Register environments that another process has registered."""
    # Importing the package that has registered them registers them again.
    warnings.filterwarnings("ignore", ".*Overriding environment .* already in registry")
    for pickled in specs:
        spec = pickle.loads(pickled)
        for name in ENTRY_POINTS:
            if isinstance(packed := getattr(spec, name), bytes):
                setattr(spec, name, _PackedEntryPoint(packed))
        gymnasium.registry.setdefault(spec.id, spec)


class _PackedEntryPoint:
    """An entry point that is unpickled, and its module imported, when it is first used.

    A worker receives all registered specs but makes few of them. Unpickling a class of a training
    script would import the script's dependencies, such as torch, in every worker. A copy or pickle
    of this object is the unpickled entry point.
    """

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled

    def __call__(self, **kwargs: Any) -> Any:
        return pickle.loads(self._pickled)(**kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(pickle.loads(self._pickled), name)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._pickled,)
