"""Shoal steps many reinforcement-learning environments as one.

    >>> import shoal
    >>> envs = shoal.make("CartPole-v1", num_envs=64)
    >>> observations, infos = envs.reset(seed=42)
    >>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    >>> observations.shape
    (64, 4)
    >>> envs.close()

Importing it makes ``gymnasium.make_vec(..., vectorization_mode="shoal")`` work as well.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal import kernels
from shoal._make import make
from shoal._registration import register_environments, register_vectorization_mode
from shoal.pools import Batch

if TYPE_CHECKING:
    from shoal.remote import connect, serve

__all__ = ["Batch", "connect", "kernels", "make", "serve"]

__version__ = version("shoal")

register_vectorization_mode()
register_environments()


def __getattr__(name: str) -> Any:
    # These need an extra, which the rest of Shoal does without.
    if name in ("connect", "serve"):
        from shoal import remote

        return getattr(remote, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
