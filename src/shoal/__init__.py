"""Shoal steps many reinforcement-learning environments as one.

    >>> import shoal
    >>> envs = shoal.make("CartPole-v1", num_envs=64)
    >>> observations, infos = envs.reset(seed=42)
    >>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    >>> observations.shape
    (64, 4)
    >>> envs.close()

Importing Shoal registers its environments (``shoal/Hockey-v0`` and variants) with Gymnasium. It
replaces nothing in other libraries; :func:`patch_gymnasium` does so on request.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal import kernels
from shoal._gymnasium_patch import patch_gymnasium, unpatch_gymnasium
from shoal._make import make
from shoal._registration import register_environments
from shoal.pools import Batch

if TYPE_CHECKING:
    from shoal.remote import connect as connect
    from shoal.remote import serve as serve

# Without `connect` and `serve`, which need the extra "remote": `from shoal import *` needs none.
__all__ = ["Batch", "kernels", "make", "patch_gymnasium", "unpatch_gymnasium"]

__version__ = version("shoal")

register_environments()


def __getattr__(name: str) -> Any:
    if name in ("connect", "serve"):
        from shoal import remote

        return getattr(remote, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
