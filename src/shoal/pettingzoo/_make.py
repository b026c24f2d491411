"""``make``: from a function that makes a parallel environment to many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, overload

from shoal._make import make as make_vector
from shoal._options import VectorOptions
from shoal.pettingzoo._agent_vector import AgentVectorEnv
from shoal.pettingzoo._hockey_ids import kernel_of, python_match
from shoal.pettingzoo._hockey_teams import HockeyTeams
from shoal.pettingzoo._parallel_vector import ParallelVectorEnv
from shoal.pettingzoo._team_env import make_team
from shoal.pettingzoo._teams import PackedTeams, Teams
from shoal.vector._infos import InfoFormat
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import Seeding

__all__ = ["ParallelFactory", "Shape", "make"]

ParallelFactory = Callable[..., Any]
"""A function that makes a PettingZoo parallel environment."""

Shape = Literal["batch", "dict"]

What = str | ParallelFactory | Sequence[ParallelFactory]

_OF_POOLS = {field.name for field in fields(VectorOptions)}


@overload
def make(
    what: What, num_envs: int | None = None, *, shape: Literal["batch"] = "batch", **options: Any
) -> AgentVectorEnv: ...


@overload
def make(
    what: What, num_envs: int | None = None, *, shape: Literal["dict"], **options: Any
) -> ParallelVectorEnv: ...


def make(
    what: What,
    num_envs: int | None = None,
    *,
    shape: Shape = "batch",
    statistics: bool = False,
    info_format: InfoFormat = "dict",
    seeding: Seeding = "adjacent",
    batch_size: int | None = None,
    copy: bool = True,
    wrappers: Sequence[Callable[[Any], Any]] = (),
    **options: Any,
) -> AgentVectorEnv | ParallelVectorEnv:
    """Make a vector of PettingZoo parallel environments.

    Args:
        what: A function that makes one, such as the ``parallel_env`` of a module of PettingZoo's,
            or a list of such functions, one for each environment. Hockey is native:
            ``hockey_v0.parallel_env``, or the name ``"shoal/Hockey-v0"`` or
            ``"shoal/HockeyDiscrete-v0"``, makes slots of its kernel, which needs no PettingZoo,
            unless a ``backend`` or other options ask for Python environments.
        num_envs: How many environments; 1 by default. For a list it follows from the list.
        shape: ``"batch"``: agents times environments as one batch, an :class:`AgentVectorEnv`, for
            agents with equal spaces. ``"dict"``: a batch for each agent, a
            :class:`ParallelVectorEnv`.
        statistics: Whether infos report the return, length and time of each agent's episode.
        info_format: As in :func:`shoal.make`.
        seeding: How one seed becomes one for each environment.
        batch_size: How many environments ``recv`` returns by default.
        copy: Whether batches are new arrays, or views that stay valid until the batch after next
            where no copy is needed anyway.
        wrappers: PettingZoo's, put around each environment, the first one innermost.
        **options: The other options of :func:`shoal.make`: ``backend``, ``workers``,
            ``autoreset_mode``, ``on_crash`` and so on. All others are given to the function.

    Raises:
        SpaceMismatchError: With ``shape="batch"``, the spaces of agents differ; or environments
            have not the same agents.
        TypeError: It makes no parallel environment. An AEC environment becomes one by
            ``pettingzoo.utils.aec_to_parallel``.

    Example:
        >>> with make("shoal/HockeyDiscrete-v0", num_envs=3) as envs:
        ...     observations, infos = envs.reset(seed=0)
        ...     observations.shape, infos["alive"]
        ((6, 18), array([ True,  True,  True,  True,  True,  True]))
    """
    if shape not in ("batch", "dict"):
        raise ValueError(f"shape must be 'batch' or 'dict', got {shape!r}")
    if "observation_mode" in options:
        raise TypeError("observation_mode: an agent's space is the same in all environments")
    of_pool = {name: value for name, value in options.items() if name in _OF_POOLS}
    of_env = {name: value for name, value in options.items() if name not in _OF_POOLS}
    of_pool |= {"seeding": seeding, "info_format": info_format, "batch_size": batch_size}
    name = None if wrappers else kernel_of(what, VectorOptions(**of_pool), of_env)
    teams: Teams
    if name is not None:
        if callable(what):
            of_env.pop("discrete", None)  # the name says it
        owner = make_vector(name, num_envs, copy=copy, **of_pool, **of_env)
        teams = HockeyTeams(owner.pool)
    else:
        factories = _team_factories(python_match(what), tuple(wrappers), of_env)
        # What is put side by side is copied then, and need not be copied before.
        owner = make_vector(factories, num_envs, copy=copy and shape == "dict", **of_pool)
        teams = _packed(owner)
    frontend = AgentVectorEnv if shape == "batch" else ParallelVectorEnv
    try:
        return frontend(
            teams,
            owner,
            statistics=statistics,
            info_format=info_format,
            seeding=seeding,
            batch_size=batch_size,
        )
    except BaseException:
        owner.close()
        raise


def _team_factories(
    what: Any, wrappers: tuple[Callable[[Any], Any], ...], env_kwargs: dict[str, Any]
) -> Any:
    """Functions that make teams, in the form in which those of their environments were given."""
    if callable(what):
        return partial(make_team, partial(what, **env_kwargs) if env_kwargs else what, wrappers)
    if not isinstance(what, Sequence):
        hint = ": give the function that makes it" if hasattr(what, "possible_agents") else ""
        raise TypeError(
            "expected a function that makes a parallel environment, or a list of such functions, "
            f"got {what!r}{hint}"
        )
    if env_kwargs:
        raise TypeError(
            f"arguments for the environments ({', '.join(env_kwargs)}) cannot be given to a list "
            "of functions: let each function take its own"
        )
    return [partial(make_team, factory, wrappers) for factory in what]


def _packed(owner: VectorEnv) -> PackedTeams:
    try:
        return PackedTeams(owner.pool)
    except BaseException:
        owner.close()
        raise
