"""What a worker process needs to build its environments: factories, and what they rely on."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from gymnasium import Space

from shoal.errors import FactoryPicklingError
from shoal.pools._environments import EnvFactory

__all__ = [
    "Introduction",
    "Recipe",
    "Unpacked",
    "pack_recipe",
    "unpack_recipe",
    "unpicklable",
]


@dataclass(frozen=True)
class Recipe:
    """The environments of one worker, the first of which stands in slot ``first``."""

    factories: Sequence[EnvFactory]
    first: int
    num_envs: int
    specs: Sequence[bytes]
    core: int | None
    threads: int | None


@dataclass(frozen=True)
class Unpacked:
    """A worker's word that it has understood its recipe, or why it has not."""

    error: BaseException | None = None


@dataclass(frozen=True)
class Introduction:
    """What a worker says of its environments once they are built, or why they are not."""

    spaces: Sequence[tuple[Space[Any], Space[Any]]] = ()
    metadata: dict[str, Any] | None = None
    render_mode: str | None = None
    error: BaseException | None = None


def pack_recipe(recipe: Recipe) -> bytes:
    """Pickle a recipe; a factory that cannot be pickled is named, with the part that cannot."""
    # By this key multiprocessing knows its own, for factories that hold the proxy of a manager.
    key = bytes(multiprocessing.current_process().authkey)
    try:
        return pickle.dumps((key, cloudpickle.dumps(recipe)))
    except Exception as error:
        found = unpicklable(recipe.factories)
        if found is None:
            raise
        place, culprit = found
        raise FactoryPicklingError(
            f"the function that makes the environment of slot {recipe.first + place} cannot be "
            f"sent to a worker process, because {culprit} cannot be pickled ({error}). Create it "
            "inside of the function, or use start='fork' or backend='thread'."
        ) from error


def unpicklable(factories: Sequence[EnvFactory]) -> tuple[int, str] | None:
    """The first factory that cannot be pickled, by its place, and what of it is to blame."""
    for place, factory in enumerate(factories):
        try:
            cloudpickle.dumps(factory)
        except Exception:
            return place, _culprit(factory) or repr(factory)
    return None


def unpack_recipe(letter: bytes) -> Recipe:
    """The recipe, in the process that it was meant for."""
    multiprocessing.current_process().authkey, packed = pickle.loads(letter)
    recipe: Recipe = pickle.loads(packed)
    return recipe


def _culprit(thing: Any, where: str = "", depth: int = 4) -> str | None:
    """Which part of an object is the one that cannot be pickled, as a user would call it."""
    for name, part in _parts(thing):
        try:
            cloudpickle.dumps(part)
        except Exception:
            path = f"{where}{name}"
            deeper = _culprit(part, f"{path}: ", depth - 1) if depth else None
            return deeper or f"{path} ({type(part).__name__}: {part!r})"
    return None


def _parts(thing: Any) -> list[tuple[str, Any]]:
    parts: list[tuple[str, Any]] = []
    function = getattr(thing, "func", None)
    if function is not None:  # functools.partial
        parts.append(("the function", function))
        parts += [(f"argument {k}", value) for k, value in enumerate(thing.args)]
        parts += [(f"argument {name!r}", value) for name, value in thing.keywords.items()]
    code = getattr(thing, "__code__", None)
    if code is not None:
        cells = getattr(thing, "__closure__", None) or ()
        for name, cell in zip(code.co_freevars, cells, strict=False):
            parts.append((f"the variable {name!r}", cell.cell_contents))
        for name in code.co_names:
            if name in thing.__globals__:
                parts.append((f"the global variable {name!r}", thing.__globals__[name]))
    if isinstance(thing, dict):
        parts += [(f"item {key!r}", value) for key, value in thing.items()]
    elif isinstance(thing, list | tuple):
        parts += [(f"item {k}", value) for k, value in enumerate(thing)]
    elif hasattr(thing, "__dict__") and not isinstance(thing, type) and code is None:
        parts += [(f"attribute {name!r}", value) for name, value in vars(thing).items()]
    return parts
