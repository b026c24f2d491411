"""TorchRL's collector on Shoal, and on TorchRL's own ways to step many environments."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector
from shoal._bench.workload import Workload

__all__ = ["FRAMES_PER_SLOT", "POLICIES", "STEPPERS", "Collecting"]

FRAMES_PER_SLOT = 64
"""How many steps of each environment are in a batch of the collector."""

Make = Callable[[str, int], Any]


def _shoal(env_id: str, num_envs: int) -> Any:
    import shoal.torchrl

    return shoal.torchrl.make(env_id, num_envs, categorical_action_encoding=True)


def _shoal_python(env_id: str, num_envs: int) -> Any:
    import shoal.torchrl

    return shoal.torchrl.make(env_id, num_envs, backend="inline", categorical_action_encoding=True)


def _shoal_in_gym_wrapper(env_id: str, num_envs: int) -> Any:
    from torchrl.envs import GymWrapper

    import shoal

    vector = shoal.make(env_id, num_envs, autoreset_mode="Disabled")
    return GymWrapper(vector, categorical_action_encoding=True)


def _gym_env(env_id: str, num_envs: int = 0) -> Any:
    from torchrl.envs import GymEnv

    # With a number, a vector of Gymnasium's with a process for each environment.
    return GymEnv(env_id, num_envs=num_envs, categorical_action_encoding=True)


def _parallel(env_id: str, num_envs: int) -> Any:
    from torchrl.envs import ParallelEnv

    # A forked process steps as fast as any other, and need not import torch once more first.
    return ParallelEnv(num_envs, partial(_gym_env, env_id), mp_start_method="fork")


def _serial(env_id: str, num_envs: int) -> Any:
    from torchrl.envs import SerialEnv

    return SerialEnv(num_envs, partial(_gym_env, env_id))


STEPPERS: dict[str, Make] = {
    "shoal": _shoal,
    "shoal-python": _shoal_python,
    "shoal-in-gym-wrapper": _shoal_in_gym_wrapper,
    "torchrl-parallel": _parallel,
    "torchrl-serial": _serial,
    "torchrl-gym-env": _gym_env,
}
"""What makes an environment of TorchRL's of so many environments, by name."""


def _random(env: Any) -> None:
    """No policy: the collector draws actions from the spec."""


def _mlp(env: Any) -> Any:
    import torch
    from tensordict.nn import TensorDictModule
    from torchrl.modules import MLP, ProbabilisticActor

    inputs = env.observation_spec["observation"].shape[-1]
    network = MLP(in_features=inputs, out_features=env.action_spec.space.n, num_cells=[64, 64])
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        spec=env.action_spec_unbatched,
        distribution_class=torch.distributions.Categorical,
    )


POLICIES: dict[str, Callable[[Any], Any]] = {"random": _random, "mlp": _mlp}
"""What chooses actions: the collector at random, or a network of two layers of 64."""


class Collecting(Contender):
    """A collector of TorchRL's with a policy, on one of its environments.

    Args:
        stepper: A name of ``STEPPERS``.
        policy: A name of ``POLICIES``.
    """

    packages = ("torchrl", "tensordict", "torch", "shoal", "gymnasium", "numpy")

    def __init__(self, stepper: str, policy: str) -> None:
        self.name = f"{stepper}, {policy}"
        self._stepper = stepper
        self._policy = policy

    def supports(self, workload: str) -> bool:
        """Whether the environments are Gymnasium's, since TorchRL makes them by their id."""
        return workload in GYMNASIUM_IDS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the environments and the collector."""
        import torch
        from torchrl.collectors import Collector

        torch.set_num_threads(1)
        torch.manual_seed(SEED)
        env = STEPPERS[self._stepper](GYMNASIUM_IDS[workload.name], num_envs)
        collector = Collector(
            env,
            POLICIES[self._policy](env),
            frames_per_batch=FRAMES_PER_SLOT * num_envs,
            total_frames=-1,
            auto_register_policy_transforms=False,
        )
        return _Batches(collector)


class _Batches(Vector):
    """What a collector gives, batch after batch."""

    def __init__(self, collector: Any) -> None:
        self._collector = collector
        self._batches = iter(collector)

    def step_many(self, seconds: float) -> tuple[int, float]:
        """Collect as many batches as fit into the time, at least one."""
        frames, elapsed = 0, 0.0
        start = time.perf_counter()
        while elapsed < seconds:
            frames += next(self._batches).numel()
            elapsed = time.perf_counter() - start
        return frames, elapsed

    def close(self) -> None:
        """End the collector, which closes its environments."""
        self._collector.shutdown()
