"""Kernels with all frontends and wrappers."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import shoal
import shoal.vector.wrappers
from shoal.sb3 import VecFrameStack, VecMonitor, VecNormalize, as_vec_env
from shoal.testing import assert_identical

WRAPPERS = [
    lambda envs, own: own.RecordEpisodeStatistics(envs),
    lambda envs, own: own.NormalizeObservation(envs),
    lambda envs, own: own.NormalizeReward(envs),
    lambda envs, own: own.RescaleAction(envs, -1.0, 1.0),
    lambda envs, own: own.ClipReward(envs, -1.0, 1.0),
    lambda envs, own: own.DictInfoToList(envs),
    lambda envs, own: own.DtypeObservation(envs, np.float64),
]


@pytest.mark.parametrize("number", range(len(WRAPPERS)))
@pytest.mark.parametrize("own", [shoal.vector.wrappers, gymnasium.wrappers.vector])
def test_wrappers_behave_as_with_python_environments(own, number):
    made = [
        WRAPPERS[number](shoal.make("Pendulum-v1", 4, backend=backend), own)
        for backend in ("inline", "kernel")
    ]
    results = [[envs.reset(seed=2)] for envs in made]
    for _ in range(210):  # beyond the end of the first episodes
        actions = made[0].action_space.sample()
        for envs, seen in zip(made, results, strict=True):
            seen.append(envs.step(actions))
    for one, other in zip(*results, strict=True):
        for got, expected in zip(one[:-1], other[:-1], strict=True):
            assert np.allclose(got, expected, rtol=1e-6)
    for envs in made:
        envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
def test_stable_baselines3_behaves_as_with_python_environments(name, mode):
    vecs = [
        as_vec_env(shoal.make(name, 3, backend=backend, autoreset_mode=mode, statistics=True))
        for backend in ("inline", "kernel")
    ]
    for vec in vecs:
        vec.seed(3)
    assert_identical(*(vec.reset() for vec in vecs))
    rng = np.random.default_rng(0)
    for _ in range(80):
        actions = rng.integers(0, vecs[0].action_space.n, 3)
        (*one, infos), (*other, expected) = (vec.step(actions) for vec in vecs)
        assert_identical(one, other)
        for info in (*infos, *expected):
            info.get("episode", {}).pop("t", None)
        for got, wanted in zip(infos, expected, strict=True):
            assert got.keys() == wanted.keys()
            for key in got:
                assert np.array_equal(got[key], wanted[key]), key
    assert vecs[1].get_attr("spec")[0].id == name
    assert vecs[1].env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False] * 3
    for vec in vecs:
        vec.close()


def test_stable_baselines3_wrappers_accept_kernels():
    vec = as_vec_env(shoal.make("Pendulum-v1", 4, autoreset_mode="SameStep"))
    vec = VecMonitor(VecFrameStack(VecNormalize(vec), 3))
    assert vec.reset().shape == (4, 9)
    for _ in range(201):
        _, _, dones, infos = vec.step(np.zeros((4, 1), np.float32))
        if dones.any():
            assert infos[0]["episode"]["l"] == 200
            assert infos[0]["terminal_observation"].shape == (9,)
    vec.set_attr("g", 5.0, indices=[1, 2])
    assert vec.get_attr("g") == [10.0, 5.0, 5.0, 10.0]
    vec.close()


def test_make_vec_uses_kernels(patched_gymnasium):
    envs = gymnasium.make_vec("CartPole-v1", 6, vectorization_mode="shoal")
    assert envs.plan.backend == "kernel"
    envs.close()
