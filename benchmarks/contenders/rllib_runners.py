"""Env runners of RLlib, on RLlib's vectors and on Shoal's."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector
from shoal._bench.workload import Workload

__all__ = ["RLLIB_CONTENDERS", "RllibRunner"]


class RllibRunner(Contender):
    """An env runner of PPO that samples rollouts of PPO's default length.

    Args:
        name: The name of the contender.
        mode: The kind of the vector: ``"sync"`` or ``"async"``, or
            ``"vector_entry_point"`` for Shoal's.
        is_ours: Whether the env runner is Shoal's.
        at_random: Whether to sample actions without the module.
    """

    packages = ("ray", "gymnasium", "numpy", "torch")

    def __init__(
        self, name: str, mode: str, *, is_ours: bool = False, at_random: bool = False
    ) -> None:
        self.name = name
        self._mode = mode
        self._is_ours = is_ours
        self._at_random = at_random

    def supports(self, workload: str) -> bool:
        """Return whether both libraries know the environment by its id."""
        return workload in GYMNASIUM_IDS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the env runner and its vector in this process."""
        import torch
        from ray.rllib.algorithms.ppo import PPOConfig
        from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

        import shoal.rllib

        torch.set_num_threads(1)  # as Ray does for an env runner
        env = GYMNASIUM_IDS[workload.name]
        if self._mode == "vector_entry_point":
            env = shoal.rllib.register(env)
        settings: dict[str, Any] = {
            "num_env_runners": 0,
            "num_envs_per_env_runner": num_envs,
            "gym_env_vectorize_mode": self._mode,
        }
        config: Any = PPOConfig()  # type: ignore[no-untyped-call]
        config = config.environment(env).env_runners(**settings).debugging(seed=SEED)
        kind = shoal.rllib.EnvRunner if self._is_ours else SingleAgentEnvRunner
        return _Rollouts(kind(config=config, worker_index=0), at_random=self._at_random)


class _Rollouts(Vector):
    def __init__(self, runner: Any, *, at_random: bool) -> None:
        self._runner = runner
        self._at_random = at_random

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Sample whole rollouts and collect their metrics, as an algorithm does."""
        steps, elapsed = 0, 0.0
        start = time.perf_counter()
        while elapsed < seconds:
            episodes = self._runner.sample(random_actions=self._at_random)
            self._runner.get_metrics()
            steps += sum(map(len, episodes))
            elapsed = time.perf_counter() - start
        return steps, elapsed

    def close(self) -> None:
        self._runner.stop()


RLLIB_CONTENDERS = (
    RllibRunner("shoal-rllib", "vector_entry_point", is_ours=True),
    RllibRunner("shoal-rllib-vector", "vector_entry_point"),
    RllibRunner("rllib-sync", "sync"),
    RllibRunner("rllib-sync-batched", "sync", is_ours=True),
    RllibRunner("rllib-async", "async"),
    RllibRunner("shoal-rllib-random", "vector_entry_point", at_random=True),
    RllibRunner("rllib-sync-random", "sync", at_random=True),
)
"""The first five act with the module of PPO, the last two without."""
