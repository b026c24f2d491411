"""What an actor needs to build its pool."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cloudpickle

from shoal.errors import FactoryPicklingError
from shoal.pools._base import Pool
from shoal.pools._environments import EnvFactory
from shoal.pools._processes.env_recipe import unpicklable

__all__ = ["ActorRecipe", "pack_recipe", "unpack_recipe"]


@dataclass(frozen=True)
class ActorRecipe:
    """How one actor builds its pool.

    Args:
        num_envs: How many slots the pool has.
        build: Builds the pool, in the actor. Its batches must be new arrays.
        factories: The user's functions that ``build`` calls, one for each slot. They are used to
            name the slot whose function cannot be pickled.
    """

    num_envs: int
    build: Callable[[], Pool]
    factories: Sequence[EnvFactory] = ()


def pack_recipe(recipe: ActorRecipe, first: int) -> bytes:
    """Pickle the function that builds a pool; ``first`` is the pool's first slot in the vector.

    Raises:
        FactoryPicklingError: It cannot be pickled. The message names the slot and the reason.
    """
    try:
        return bytes(cloudpickle.dumps(recipe.build))
    except Exception as error:
        found = unpicklable(recipe.factories)
        where = f"slots {first} and following" if found is None else f"slot {first + found[0]}"
        culprit = repr(recipe.build) if found is None else found[1]
        raise FactoryPicklingError(
            f"the factory of {where} cannot be sent to a Ray actor, because {culprit} cannot be "
            f"pickled ({error}). Create it inside of the factory."
        ) from error


def unpack_recipe(packed: bytes) -> Callable[[], Pool]:
    """Return the function that builds a pool; called in the actor.

    Raises:
        FactoryPicklingError: It cannot be unpickled, for instance because a module is missing.
    """
    try:
        build: Callable[[], Pool] = pickle.loads(packed)
    except Exception as error:
        raise FactoryPicklingError(
            f"an actor cannot unpickle the factories of its environments ({error!r}). The modules "
            "that they use must be importable in the actor: install them on the nodes, name them "
            "in runtime_env, or define the factories in the main module."
        ) from error
    return build
