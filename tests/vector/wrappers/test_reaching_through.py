"""Wrappers forward calls and attributes, and importing them needs no optional library."""

import re
import subprocess
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

import shoal
from shoal.testing import assert_identical
from shoal.vector import wrappers
from shoal.vector._infos import infos_as_list
from tests.vector.wrappers.playing import factory_of


def wrapped(envs):
    envs = wrappers.NormalizeReward(wrappers.ClipReward(envs, 0, 1))
    envs = wrappers.NormalizeObservation(wrappers.FrameStackObservation(envs, 2))
    return wrappers.RecordEpisodeStatistics(wrappers.FlattenObservation(envs))


@pytest.mark.parametrize("backend", ["inline", "process"])
def test_attributes_and_methods_of_environments(backend):
    with wrapped(shoal.make("CartPole-v1", num_envs=3, backend=backend)) as envs:
        envs.reset(seed=1)
        envs.set_attr("gravity", [1.0, 2.0, 3.0])
        assert envs.get_attr("gravity") == (1.0, 2.0, 3.0)
        envs.set_attr("gravity", 5.0)
        assert envs.call("gravity") == (5.0, 5.0, 5.0)
        assert envs.call("get_wrapper_attr", "gravity") == (5.0, 5.0, 5.0)
        assert envs.num_envs == 3
        assert envs.unwrapped.plan is not None
    assert envs.closed


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_backends_give_the_same_results(mode):
    factory = factory_of("CartPole-v1")
    results = []
    for backend in ("inline", "process"):
        with wrapped(shoal.make(factory, 3, backend=backend, autoreset_mode=mode)) as envs:
            results.append([envs.reset(seed=2)])
            for step in range(40):
                result = envs.step(np.array([step % 2, 1, 0]))
                result[4].pop("episode", None)
                results[-1].append(result)
    assert_identical(*results)


def test_vector_without_attribute_methods():
    class Bare(gymnasium.vector.VectorEnv):
        num_envs = 1
        metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    envs = wrappers.VectorWrapper(Bare())
    for use in (
        lambda: envs.call("x"),
        lambda: envs.get_attr("x"),
        lambda: envs.set_attr("x", 1),
    ):
        with pytest.raises(AttributeError, match="Bare, wrapped by VectorWrapper, has no method"):
            use()


def test_only_vectors_can_be_wrapped():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises((TypeError, AssertionError), match="VectorEnv"):
        wrappers.ClipReward(env, 0, 1)


def test_derived_wrappers():
    class Shifted(wrappers.VectorObservationWrapper):
        def observations(self, observations):
            return observations + 1

    factory = factory_of("CartPole-v1")
    plain = shoal.make(factory, 2, backend="inline", autoreset_mode="SameStep")
    with plain, Shifted(shoal.make(factory, 2, autoreset_mode="SameStep")) as envs:
        assert_identical(envs.reset(seed=3)[0], plain.reset(seed=3)[0] + 1)
        finals = 0
        for _ in range(40):
            got, expected = envs.step([0, 1]), plain.step([0, 1])
            assert_identical(got[0], expected[0] + 1)
            for slot in np.flatnonzero(expected[4].get("_final_obs", [])):
                finals += 1
                final = expected[4]["final_obs"][slot] + 1
                assert_identical(got[4]["final_obs"][slot], final)
        assert finals > 3


def test_deleting_a_wrapper_does_not_close_its_vector():
    with shoal.make("CartPole-v1", num_envs=2, backend="inline") as envs:
        wrappers.ClipReward(envs, 0, 1)
        assert not envs.closed
        envs.reset(seed=0)


def test_actions_are_broadcast():
    with wrappers.ClipAction(shoal.make("Pendulum-v1", num_envs=3, backend="inline")) as envs:
        envs.reset(seed=0)
        assert envs.actions(np.array([5.0, -5.0, 0.5])).tolist() == [[2.0], [-2.0], [0.5]]
        envs.step([[5.0], [-5.0], [0.5]])


def test_error_names_the_missing_extra():
    try:
        import gymnasium.wrappers.array_conversion  # noqa: F401
    except DependencyNotInstalled as missing:
        with pytest.raises(DependencyNotInstalled, match=re.escape(str(missing))):
            _ = wrappers.NumpyToTorch
    else:
        assert issubclass(wrappers.NumpyToTorch, wrappers.ArrayConversion)


def test_import_loads_no_optional_library():
    code = """
import sys
import shoal.vector.wrappers
heavy = {"torch", "jax", "cv2", "pygame", "imageio", "moviepy", "array_api_compat"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert "NumpyToTorch" in shoal.vector.wrappers.__all__
try:
    shoal.vector.wrappers.Nothing
except AttributeError as error:
    assert "has no attribute 'Nothing'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_options_of_the_caller_are_not_modified():
    factories = [partial(gymnasium.make, "FrozenLake-v1")] * 2
    envs = gymnasium.vector.SyncVectorEnv(factories, autoreset_mode=AutoresetMode.DISABLED)
    with wrappers.DictInfoToList(wrappers.FlattenObservation(envs)) as around:
        around.reset(seed=1)
        options = {"reset_mask": np.array([True, False])}
        around.reset(options=options)
        assert list(options) == ["reset_mask"]


def test_info_keys_with_a_leading_underscore():
    infos = {
        "_hidden": np.array([1, 2]),
        "seen": np.array([3, 4]),
        "_seen": np.array([True, False]),
    }
    assert infos_as_list(infos, 2) == [{"_hidden": 1, "seen": 3}, {"_hidden": 2}]
