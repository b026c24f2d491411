"""Which environments there are by name, and what steps them unless the user says otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec

from shoal._envs.atari.games import ale
from shoal._envs.atari.registered_ids import is_atari
from shoal._envs.builtin import has_builtin_kernel
from shoal.errors import MissingExtraError

__all__ = ["KnownEnv", "known_envs"]

_NEEDS = {
    "gymnasium.envs.box2d": ("Box2D", "gymnasium[box2d]"),
    "gymnasium.envs.mujoco": ("mujoco", "gymnasium[mujoco]"),
    "gymnasium.envs.phys2d": ("jax", "gymnasium[jax]"),
    "gymnasium.envs.tabular": ("jax", "gymnasium[jax]"),
}
"""Where environments come from that need a module besides: its name, and what brings it."""

_ATARI = "ale_py."


@dataclass(frozen=True)
class KnownEnv:
    """An environment that can be made by its name."""

    id: str
    stepped_by: Literal["kernel", "atari", "python"]
    """A kernel, Shoal's Atari vectors, or Python's interpreter: what ``backend="auto"`` takes."""
    needs: str | None
    """What is missing here: the extra that brings it, or a module; None where nothing is."""
    is_old: bool
    """Whether there is a newer version, or another name for the same."""


def known_envs() -> list[KnownEnv]:
    """All that Gymnasium's registry holds, with the games of ale-py if that is installed.

    >>> [env.stepped_by for env in known_envs() if env.id in ("CartPole-v0", "CartPole-v1")]
    ['kernel', 'kernel']
    >>> [env.id for env in known_envs() if env.id.startswith("CartPole-v") and not env.is_old]
    ['CartPole-v1']
    """
    with suppress(MissingExtraError):
        ale()  # which registers its games
    specs = list(gymnasium.registry.values())
    newest = _newest(specs)
    return [_known(spec, newest) for spec in specs]


def _newest(specs: Iterable[EnvSpec]) -> dict[tuple[str | None, str], int]:
    """The highest version of each name."""
    newest: dict[tuple[str | None, str], int] = {}
    for spec in specs:
        key = spec.namespace, spec.name
        newest[key] = max(newest.get(key, 0), spec.version or 0)
    return newest


def _known(spec: EnvSpec, newest: dict[tuple[str | None, str], int]) -> KnownEnv:
    place = spec.entry_point
    module = (place if isinstance(place, str) else getattr(place, "__module__", "")).split(":")[0]
    # What Gymnasium has put there as a function only says what has become of the environment.
    is_gone = not isinstance(place, str) and module.startswith("gymnasium.")
    is_renamed = module.startswith(_ATARI) and not is_atari(spec)
    is_outdated = (spec.version or 0) < newest[spec.namespace, spec.name]
    if has_builtin_kernel(spec, {}):
        stepped_by: Literal["kernel", "atari", "python"] = "kernel"
    else:
        stepped_by = "atari" if is_atari(spec) else "python"
    return KnownEnv(spec.id, stepped_by, _needs(module), is_outdated or is_renamed or is_gone)


def _needs(module: str) -> str | None:
    for prefix, (package, extra) in _NEEDS.items():
        if module.startswith(prefix):
            return None if find_spec(package) else extra
    package = module.partition(".")[0]
    is_here = not package or package in sys.modules or find_spec(package)
    return None if is_here else package
