"""The RLlib frontend: any Shoal vector as what RLlib's env runners step.

An env runner takes a vector as it is, with no loop of its own around single environments, if it is
registered and asked for by ``gym_env_vectorize_mode="vector_entry_point"``:

.. code-block:: python

    import shoal.rllib

    config = (
        PPOConfig()
        .environment(shoal.rllib.register("CartPole-v1"))
        .env_runners(
            gym_env_vectorize_mode="vector_entry_point",
            num_envs_per_env_runner=64,
            env_runner_cls=shoal.rllib.EnvRunner,
        )
    )

:func:`register` takes what :func:`shoal.make` takes, the URL of a server, or a function that makes
a vector. :class:`EnvRunner` is RLlib's own, but for one thing: it treats the observations and the
actions of all slots as one array. Episodes are the same with either; leave it out, and RLlib's is
used.
"""

from shoal.errors import MissingExtraError

try:
    import ray.rllib as _  # noqa: F401
except ImportError as error:
    raise MissingExtraError('RLlib is not installed, run `pip install "shoal[rllib]"`') from error

from shoal.rllib._connectors import BatchedActions, BatchedObservations
from shoal.rllib._env_runner import EnvRunner
from shoal.rllib._register import register

__all__ = ["BatchedActions", "BatchedObservations", "EnvRunner", "register"]
