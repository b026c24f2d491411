"""The TorchRL frontend: a vector as one batched TorchRL environment.

    >>> import shoal.torchrl
    >>> env = shoal.torchrl.make("CartPole-v1", num_envs=8)
    >>> env.rollout(5)["next", "reward"].shape
    torch.Size([8, 5, 1])
    >>> env.close()

It replaces TorchRL's ``ParallelEnv(8, ...)`` or ``GymEnv(..., num_envs=8)`` and works with
collectors, ``TransformedEnv`` and losses.
"""

from shoal.errors import MissingExtraError

try:
    import torchrl as _  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError('TorchRL is not installed: pip install "shoal[torchrl]"') from error

from shoal.torchrl._env import ShoalEnv
from shoal.torchrl._make import make

__all__ = ["ShoalEnv", "make"]
