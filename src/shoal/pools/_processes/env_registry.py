"""Environments registered in one process, made known to another."""

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
    """The environments that this process has registered besides Gymnasium's own, pickled.

    One that cannot be pickled, say because its entry point holds a lock, is left out: a worker that
    asks for it is told by Gymnasium that it does not exist.
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
    """Make environments known that another process has registered."""
    # The package that has registered them does it again when it is imported here.
    warnings.filterwarnings("ignore", ".*Overriding environment .* already in registry")
    for pickled in specs:
        spec = pickle.loads(pickled)
        for name in ENTRY_POINTS:
            if isinstance(packed := getattr(spec, name), bytes):
                setattr(spec, name, _PackedEntryPoint(packed))
        gymnasium.registry.setdefault(spec.id, spec)


class _PackedEntryPoint:
    """An entry point that is unpickled, and its module imported, when it is asked for.

    A worker is told of all that is registered, and most of it is none of its business: a class that
    stands in a training script would bring the script's imports, torch among them, to every worker.
    Copied or sent back, it is what was packed.
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
