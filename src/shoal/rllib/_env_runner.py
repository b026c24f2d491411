"""RLlib's env runner without its loops over single observations and actions."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from shoal.rllib._connectors import batch_actions, batch_observations

__all__ = ["EnvRunner"]


class EnvRunner(SingleAgentEnvRunner):
    """A faster env runner that collects the same episodes as RLlib's.

    Pass it as ``AlgorithmConfig.env_runners(env_runner_cls=...)``. It supports the same vectors as
    RLlib's env runner. RLlib copies and scales observations and actions one by one, which is the
    largest part of a step if environments are fast. This env runner processes all slots at once,
    with :class:`.BatchedObservations` and :class:`.BatchedActions`. Pipelines with custom
    connectors, and pipelines of modules with state, are left unchanged.
    """

    def __init__(self, *, config: AlgorithmConfig, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        if self.module is not None and not self.module.is_stateful():
            batch_observations(self._env_to_module)
            batch_actions(self._module_to_env)
