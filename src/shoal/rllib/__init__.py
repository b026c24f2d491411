"""The RLlib frontend: vectors for RLlib's env runners.

An env runner steps a registered vector directly, without a loop over single environments, if the
config sets ``gym_env_vectorize_mode="vector_entry_point"``:

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

:func:`register` accepts the arguments of :func:`shoal.make`, the URL of a server, or a function
that creates a vector. :class:`EnvRunner` is an optional, faster subclass of RLlib's env runner. It
processes the observations and actions of all slots as one array and collects the same episodes.
"""

from shoal.errors import MissingExtraError

try:
    import ray.rllib as _  # noqa: F401
except ImportError as error:
    raise MissingExtraError('RLlib is not installed: pip install "shoal[rllib]"') from error

from shoal.rllib._connectors import BatchedActions, BatchedObservations
from shoal.rllib._env_runner import EnvRunner
from shoal.rllib._register import register

__all__ = ["BatchedActions", "BatchedObservations", "EnvRunner", "register"]
