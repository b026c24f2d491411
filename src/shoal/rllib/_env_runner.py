"""RLlib's env runner, without its loops over single observations and actions."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from shoal.rllib._connectors import batch_actions, batch_observations

__all__ = ["EnvRunner"]


class EnvRunner(SingleAgentEnvRunner):
    """Collects the episodes that RLlib's env runner collects, and sooner.

    For ``AlgorithmConfig.env_runners(env_runner_cls=...)``; it takes any vector that RLlib's takes.
    RLlib looks at observations and actions one by one on their way to the module and back, copies
    and scales each, and this is the largest part of a step where environments are quick; here it is
    done for all slots at once, by :class:`.BatchedObservations` and :class:`.BatchedActions`. A
    pipeline that has connectors of the user's own stays as it is, and so do both where the module
    has a state.
    """

    def __init__(self, *, config: AlgorithmConfig, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        if self.module is not None and not self.module.is_stateful():
            batch_observations(self._env_to_module)
            batch_actions(self._module_to_env)
