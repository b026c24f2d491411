"""Workloads are created from a user's environment, which is examined in another process."""

from __future__ import annotations

import operator
import os
import time
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

import shoal
from shoal._bench.env_workload import env_workload
from shoal._bench.probe import EnvProfile, probe_env
from shoal._envs import builtin_kernel
from tests.bench.contenders import Still


class Failing(Still):
    """Fails in the given operation."""

    def __init__(self, where: str) -> None:
        self.where = where
        if where == "init":
            raise ValueError("no\nroom")

    def reset(self, **options: Any) -> tuple[Any, Any]:
        if self.where == "reset":
            raise KeyError("start")
        return super().reset(**options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        if self.where == "step":
            raise RuntimeError("lost")
        if self.where == "death":
            os.abort()
        if self.where == "sleep":
            time.sleep(60)
        return super().step(action)


def load_kernel() -> Any:
    return builtin_kernel("CartPole-v1", {})


def load_class() -> Any:
    return Still


def load_failing_class() -> Any:
    return Failing


def load_id() -> str:
    return "CartPole-v1"


@pytest.mark.parametrize("load", [load_id, load_kernel, load_class])
def test_ids_kernels_and_classes_can_be_created_once_and_as_vectors(load: Any) -> None:
    workload = env_workload("it", load)
    env = workload.make()
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    env.close()
    with workload.vector(2) as envs:
        assert isinstance(envs, gymnasium.vector.VectorEnv)
        assert envs.reset(seed=0)[0].shape[0] == 2


def test_arguments_reach_the_environment_and_its_kernel() -> None:
    workload = env_workload("it", partial(operator.concat, "Pendulum", "-v1"), {"g": 1.62})
    env: Any = workload.make()
    assert env.unwrapped.g == 1.62
    with workload.vector(2) as envs:
        assert envs.plan.backend == "kernel"
        assert np.all(envs.get_attr("g") == np.array(1.62))


@pytest.mark.parametrize("source", [3, lambda: 3])
def test_sources_that_give_no_environment_are_errors(source: object) -> None:
    with pytest.raises(TypeError, match=r"^expected .* got 3$"):
        env_workload("it", lambda: source).make()


def probed(load: Any, timeout: float = 30.0, **arguments: Any) -> EnvProfile:
    return probe_env(env_workload("it", load, arguments), load, arguments, timeout)


def test_the_profile_of_an_environment() -> None:
    profile = probed(load_id)
    assert profile.has_kernel
    assert profile.has_own_vector
    assert not profile.is_kernel
    assert 0 < profile.busy <= profile.step < profile.making
    assert (profile.reward, profile.reward_is_number) == ("float", True)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("init", "it cannot be created: ValueError: no room"),
        ("reset", "it cannot be reset: KeyError: 'start'"),
        ("step", "it cannot be stepped: RuntimeError: lost"),
        ("death", r"it cannot be examined: died \(SIGABRT\): .*"),
    ],
)
def test_failures_are_reported_in_one_line(where: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        probed(load_failing_class, where=where)


def test_an_environment_that_hangs_is_an_error_after_the_timeout() -> None:
    with pytest.raises(ValueError, match=r"^it cannot be examined: no answer .* within 1 s$"):
        probed(load_failing_class, timeout=1.0, where="sleep")


def test_arguments_for_atari_games_are_an_error() -> None:
    pytest.importorskip("ale_py")
    game = env_workload("Pong", lambda: "ALE/Pong-v5", {"stack_num": 2})
    with pytest.raises(TypeError, match="not supported for Atari games"):
        game.make()
    env = env_workload("Pong", lambda: "ALE/Pong-v5").make()
    with shoal.make("ALE/Pong-v5", 1) as envs:
        assert env.observation_space == envs.single_observation_space
