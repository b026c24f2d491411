"""What users name as an environment: made once, made as a vector, and looked at."""

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
    """Fails where it is told to."""

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


def a_kernel() -> Any:
    return builtin_kernel("CartPole-v1", {})


def a_class() -> Any:
    return Still


def a_failing_one() -> Any:
    return Failing


def cart_pole() -> str:
    return "CartPole-v1"


@pytest.mark.parametrize("load", [cart_pole, a_kernel, a_class])
def test_ids_kernels_and_functions_are_made_once_and_as_vectors(load: Any) -> None:
    workload = env_workload("it", load)
    env = workload.make()
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    env.close()
    with workload.vector(2) as envs:
        assert isinstance(envs, gymnasium.vector.VectorEnv)
        assert envs.reset(seed=0)[0].shape[0] == 2


def test_an_id_has_its_kernel_and_arguments_reach_the_environment() -> None:
    workload = env_workload("it", partial(operator.concat, "Pendulum", "-v1"), {"g": 1.62})
    env: Any = workload.make()
    assert env.unwrapped.g == 1.62
    with workload.vector(2) as envs:
        assert envs.plan.backend == "kernel"
        assert np.all(envs.get_attr("g") == np.array(1.62))


@pytest.mark.parametrize("what", [3, lambda: 3])
def test_what_is_no_environment_is_refused(what: object) -> None:
    with pytest.raises(TypeError, match=r"^expected .* got 3$"):
        env_workload("it", lambda: what).make()


def seen(load: Any, timeout: float = 30.0, **arguments: Any) -> EnvProfile:
    return probe_env(env_workload("it", load, arguments), load, arguments, timeout)


def test_an_environment_is_looked_at_from_afar() -> None:
    found = seen(cart_pole)
    assert found.has_kernel
    assert found.has_own_vector
    assert not found.is_kernel
    assert 0 < found.busy <= found.step < found.making
    assert (found.reward, found.reward_is_number) == ("float", True)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("init", "it cannot be made: ValueError: no room"),
        ("reset", "it cannot be reset: KeyError: 'start'"),
        ("step", "it cannot be stepped: RuntimeError: lost"),
        ("death", r"it cannot be looked at: died \(SIGABRT\): .*"),
    ],
)
def test_what_fails_is_told_in_one_line(where: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        seen(a_failing_one, where=where)


def test_what_never_answers_is_given_up() -> None:
    with pytest.raises(ValueError, match=r"^it cannot be looked at: no answer .* within 1 s$"):
        seen(a_failing_one, timeout=1.0, where="sleep")


def test_games_take_no_settings_since_each_library_has_others() -> None:
    pytest.importorskip("ale_py")
    game = env_workload("Pong", lambda: "ALE/Pong-v5", {"stack_num": 2})
    with pytest.raises(TypeError, match="give none"):
        game.make()
    env = env_workload("Pong", lambda: "ALE/Pong-v5").make()
    with shoal.make("ALE/Pong-v5", 1) as envs:
        assert env.observation_space == envs.single_observation_space
