"""What an actor hosts: a pool for some neighbouring slots, and how it is sent there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cloudpickle

from shoal.errors import FactoryPicklingError
from shoal.pools._base import Pool
from shoal.pools._environments import EnvFactory
from shoal.pools._processes.env_recipe import unpicklable

__all__ = ["Part", "pack_part", "unpack_part"]


@dataclass(frozen=True)
class Part:
    """The slots of one actor.

    Args:
        num_envs: How many they are.
        build: Makes their pool, in the actor; its batches must be new arrays.
        factories: Functions of the user's that ``build`` calls, one for each slot, if it does.
    """

    num_envs: int
    build: Callable[[], Pool]
    factories: Sequence[EnvFactory] = ()


def pack_part(part: Part, first: int) -> bytes:
    """Pickle what builds a part; ``first`` is its first slot.

    Raises:
        FactoryPicklingError: It cannot be pickled; the message says which slot, and why.
    """
    try:
        return bytes(cloudpickle.dumps(part.build))
    except Exception as error:
        found = unpicklable(part.factories)
        where = f"slots {first} and following" if found is None else f"slot {first + found[0]}"
        culprit = repr(part.build) if found is None else found[1]
        raise FactoryPicklingError(
            f"what makes the environment of {where} cannot be sent to an actor of Ray's, because "
            f"{culprit} cannot be pickled ({error}). Create it inside of the function."
        ) from error


def unpack_part(packed: bytes) -> Callable[[], Pool]:
    """What builds a part, in the actor.

    Raises:
        FactoryPicklingError: What it needs is not there.
    """
    try:
        build: Callable[[], Pool] = pickle.loads(packed)
    except Exception as error:
        raise FactoryPicklingError(
            f"an actor cannot make sense of what makes its environments ({error!r}). What they use "
            "must be importable there: install it on the nodes, name it in runtime_env, or define "
            "it in the main module."
        ) from error
    return build
