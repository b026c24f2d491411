"""``make``: creation of vectors of parallel environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, overload

from shoal._make import make as make_vector
from shoal._options import VectorOptions
from shoal.pettingzoo._agent_vector import AgentVectorEnv
from shoal.pettingzoo._hockey_ids import kernel_name, python_factory
from shoal.pettingzoo._hockey_teams import HockeyTeams
from shoal.pettingzoo._parallel_vector import ParallelVectorEnv
from shoal.pettingzoo._team_env import make_team
from shoal.pettingzoo._teams import PackedTeams, Teams
from shoal.vector._infos import InfoFormat
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import Seeding

__all__ = ["ParallelFactory", "Shape", "make"]

ParallelFactory = Callable[..., Any]
"""A function that creates a PettingZoo parallel environment."""

Shape = Literal["batch", "dict"]

What = str | ParallelFactory | Sequence[ParallelFactory]

_POOL_OPTIONS = {field.name for field in fields(VectorOptions)}


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
    """Create a vector of PettingZoo parallel environments.

    Args:
        what: A function that creates a parallel environment, such as ``parallel_env`` of a
            PettingZoo module, or a list of such functions, one per environment. Hockey is native:
            ``hockey_v0.parallel_env`` and the ids ``"shoal/Hockey-v0"`` and
            ``"shoal/HockeyDiscrete-v0"`` select its kernel, which does not need PettingZoo,
            unless ``backend`` or other options request Python environments.
        num_envs: Number of environments. Defaults to 1, or to the length of the list.
        shape: ``"batch"`` for an :class:`AgentVectorEnv`, one batch of all agents, which must have
            equal spaces. ``"dict"`` for a :class:`ParallelVectorEnv`, one batch per agent.
        statistics: Whether infos report the return, length and time of each agent's episode.
        info_format: See :func:`shoal.make`.
        seeding: How a seed is expanded to one seed per environment.
        batch_size: Number of environments that ``recv`` returns by default.
        copy: Whether batches are new arrays. Otherwise they are views, where possible, that stay
            valid until the batch after next.
        wrappers: PettingZoo wrappers for each environment, innermost first.
        **options: Other options of :func:`shoal.make`, such as ``backend``, ``workers``,
            ``autoreset_mode`` and ``on_crash``. All remaining options are passed to the function.

    Raises:
        SpaceMismatchError: If environments have different agents, or the spaces of agents differ
            and ``shape`` is ``"batch"``.
        TypeError: If the function does not create a parallel environment. Convert an AEC
            environment with ``pettingzoo.utils.aec_to_parallel``.

    Example:
        >>> with make("shoal/HockeyDiscrete-v0", num_envs=3) as envs:
        ...     observations, infos = envs.reset(seed=0)
        ...     observations.shape, infos["alive"]
        ((6, 18), array([ True,  True,  True,  True,  True,  True]))
    """
    if shape not in ("batch", "dict"):
        raise ValueError(f"shape must be 'batch' or 'dict', got {shape!r}")
    if "observation_mode" in options:
        raise TypeError(
            "observation_mode is not supported: an agent has the same space in all environments"
        )
    pool_options = {name: value for name, value in options.items() if name in _POOL_OPTIONS}
    env_kwargs = {name: value for name, value in options.items() if name not in _POOL_OPTIONS}
    pool_options |= {"seeding": seeding, "info_format": info_format, "batch_size": batch_size}
    name = None if wrappers else kernel_name(what, VectorOptions(**pool_options), env_kwargs)
    teams: Teams
    if name is not None:
        if callable(what):
            env_kwargs.pop("discrete", None)  # already part of the id
        owner = make_vector(name, num_envs, copy=copy, **pool_options, **env_kwargs)
        teams = HockeyTeams(owner.pool)
    else:
        factories = _team_factories(python_factory(what), tuple(wrappers), env_kwargs)
        # Joining the agents' batches copies them, so that the pool need not.
        owner = make_vector(factories, num_envs, copy=copy and shape == "dict", **pool_options)
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
    """Convert a function, or a list of functions, to one that creates :class:`TeamEnv`."""
    if callable(what):
        return partial(make_team, partial(what, **env_kwargs) if env_kwargs else what, wrappers)
    if not isinstance(what, Sequence):
        hint = ": pass the function that creates it" if hasattr(what, "possible_agents") else ""
        raise TypeError(
            "expected a function that creates a parallel environment, or a list of such "
            f"functions, got {what!r}{hint}"
        )
    if env_kwargs:
        raise TypeError(
            f"arguments for the environments ({', '.join(env_kwargs)}) cannot be combined with a "
            "list of functions: bind them to each function, for example with functools.partial"
        )
    return [partial(make_team, factory, wrappers) for factory in what]


def _packed(owner: VectorEnv) -> PackedTeams:
    try:
        return PackedTeams(owner.pool)
    except BaseException:
        owner.close()
        raise
