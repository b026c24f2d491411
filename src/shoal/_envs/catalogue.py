"""The catalogue of registered environments and the engine that steps each by default."""

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

_REQUIREMENTS = {
    "gymnasium.envs.box2d": ("Box2D", "gymnasium[box2d]"),
    "gymnasium.envs.mujoco": ("mujoco", "gymnasium[mujoco]"),
    "gymnasium.envs.phys2d": ("jax", "gymnasium[jax]"),
    "gymnasium.envs.tabular": ("jax", "gymnasium[jax]"),
}
"""Environment modules that need another module: its name, and the extra that installs it."""

_ALE_PY_PREFIX = "ale_py."


@dataclass(frozen=True)
class KnownEnv:
    """A registered environment."""

    id: str
    stepped_by: Literal["kernel", "atari", "python"]
    """What ``backend="auto"`` uses: a kernel, Shoal's Atari games, or the Python environment."""
    needs: str | None
    """The missing extra or module; None if the environment can be made."""
    is_old: bool
    """Whether a newer version or a newer name exists."""


def known_envs() -> list[KnownEnv]:
    """Return all environments of Gymnasium's registry, with the games of ale-py if installed.

    >>> [env.stepped_by for env in known_envs() if env.id in ("CartPole-v0", "CartPole-v1")]
    ['kernel', 'kernel']
    >>> [env.id for env in known_envs() if env.id.startswith("CartPole-v") and not env.is_old]
    ['CartPole-v1']
    """
    with suppress(MissingExtraError):
        ale()  # the import registers its games
    specs = list(gymnasium.registry.values())
    newest = _newest(specs)
    return [_known(spec, newest) for spec in specs]


def _newest(specs: Iterable[EnvSpec]) -> dict[tuple[str | None, str], int]:
    """Return the highest version of each environment name."""
    newest: dict[tuple[str | None, str], int] = {}
    for spec in specs:
        key = spec.namespace, spec.name
        newest[key] = max(newest.get(key, 0), spec.version or 0)
    return newest


def _known(spec: EnvSpec, newest: dict[tuple[str | None, str], int]) -> KnownEnv:
    entry = spec.entry_point
    module = (entry if isinstance(entry, str) else getattr(entry, "__module__", "")).split(":")[0]
    # For a removed environment, Gymnasium registers a function that raises an error.
    is_removed = not isinstance(entry, str) and module.startswith("gymnasium.")
    is_renamed = module.startswith(_ALE_PY_PREFIX) and not is_atari(spec)
    is_outdated = (spec.version or 0) < newest[spec.namespace, spec.name]
    if has_builtin_kernel(spec, {}):
        stepped_by: Literal["kernel", "atari", "python"] = "kernel"
    else:
        stepped_by = "atari" if is_atari(spec) else "python"
    return KnownEnv(
        spec.id, stepped_by, _missing_requirement(module), is_outdated or is_renamed or is_removed
    )


def _missing_requirement(module: str) -> str | None:
    for prefix, (package, extra) in _REQUIREMENTS.items():
        if module.startswith(prefix):
            return None if find_spec(package) else extra
    package = module.partition(".")[0]
    is_installed = not package or package in sys.modules or find_spec(package)
    return None if is_installed else package
