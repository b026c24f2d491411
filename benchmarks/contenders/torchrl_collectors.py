"""TorchRL's collector on Shoal's environments and on TorchRL's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector
from shoal._bench.workload import Workload

__all__ = ["FRAMES_PER_SLOT", "POLICIES", "STEPPERS", "TORCHRL_CONTENDERS", "Collecting"]

FRAMES_PER_SLOT = 64
"""The steps of each environment in a batch of the collector."""

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

    # With num_envs, GymEnv uses Gymnasium's AsyncVectorEnv, with one process per environment.
    return GymEnv(env_id, num_envs=num_envs, categorical_action_encoding=True)


def _parallel(env_id: str, num_envs: int) -> Any:
    from torchrl.envs import ParallelEnv

    # A forked process is as fast as a spawned one and does not import torch again.
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
"""The functions that create a TorchRL environment of many environments, by name."""


def _random(env: Any) -> None:
    """Return no policy: the collector samples the actions."""


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
"""The functions that create a policy, by name."""


class Collecting(Contender):
    """A TorchRL collector with a policy.

    Args:
        stepper: A key of ``STEPPERS``.
        policy: A key of ``POLICIES``.
    """

    packages = ("torchrl", "tensordict", "torch", "shoal", "gymnasium", "numpy")

    def __init__(self, stepper: str, policy: str) -> None:
        self.name = f"{stepper}, {policy}"
        self._stepper = stepper
        self._policy = policy

    def supports(self, workload: str) -> bool:
        """Return whether TorchRL can create the environment by its id."""
        return workload in GYMNASIUM_IDS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the environments and the collector."""
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
    """Batches of a collector."""

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
        """Shut the collector down, which closes its environments."""
        self._collector.shutdown()


TORCHRL_CONTENDERS = [Collecting(stepper, policy) for policy in POLICIES for stepper in STEPPERS]
