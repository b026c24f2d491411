"""`as_vec_env` and `as_vector_env`."""

import copy
from functools import partial

import gymnasium
import numpy as np
import pytest
import stable_baselines3.common.vec_env as original
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor

import shoal
import shoal.sb3
from shoal.errors import ActionTypeError, InvalidActionError, ResetMaskError
from shoal.sb3 import DummyVecEnv, VecNormalize, as_vec_env, as_vector_env, make_vec_env
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector.wrappers import NormalizeObservation, RecordEpisodeStatistics, VectorWrapper
from tests.random_environments import RandomEnv
from tests.sb3.environments import Box, Fragile

SPACE = spaces.Dict(a=spaces.Box(-1, 1, (3,)), b=spaces.Discrete(9))


def random_envs(count=3, actions=None):
    actions = spaces.Discrete(2) if actions is None else actions
    return [partial(RandomEnv, SPACE, actions) for _ in range(count)]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_as_vec_env_of_all_backends_and_modes(mode, copies, backend):
    start = {"start": "fork"} if backend == "process" else {}
    envs = shoal.make(random_envs(), backend=backend, autoreset_mode=mode, copy=copies, **start)
    vec_env, reference = as_vec_env(envs), original.DummyVecEnv(random_envs())
    assert vec_env.vector is envs
    for each in (vec_env, reference):
        each.seed(3)
    assert_identical(vec_env.reset(), reference.reset())
    kept = []
    for step in range(60):
        actions = np.arange(3) % 2 if step % 2 else np.zeros(3, np.int64)
        results, expected = vec_env.step(actions), reference.step(actions)
        assert_identical(results, expected)
        assert_identical(list(vec_env.reset_infos), list(reference.reset_infos))
        kept.append((results, copy.deepcopy(results)))
    for results, copied in kept:
        assert_identical(results, copied)
    vec_env.close()
    assert envs.closed


@pytest.mark.parametrize("mode", AutoresetMode)
def test_as_vec_env_of_wrapped_and_gymnasium_vectors(mode):
    made = [
        gymnasium.vector.SyncVectorEnv(random_envs(), autoreset_mode=mode),
        VectorWrapper(shoal.make(random_envs(), backend="inline", autoreset_mode=mode)),
    ]
    for envs in made:
        vec_env, reference = as_vec_env(envs), DummyVecEnv(random_envs())
        for each in (vec_env, reference):
            each.seed(3)
        assert_identical(vec_env.reset(), reference.reset())
        kept = []
        for _ in range(60):
            results, expected = (each.step(np.ones(3, np.int64)) for each in (vec_env, reference))
            assert_identical(results[:3], expected[:3])
            for mine, theirs in zip(results[3], expected[3], strict=True):
                assert mine.keys() == theirs.keys()
                if "terminal_observation" in theirs:
                    assert_identical(mine["terminal_observation"], theirs["terminal_observation"])
            kept.append((results[0], copy.deepcopy(results[0])))
        for results, copied in kept:
            assert_identical(results, copied)
        vec_env.close()
        assert envs.closed


def test_vectors_with_limited_calls():
    envs = gymnasium.vector.SyncVectorEnv([partial(gymnasium.make, "CartPole-v1")] * 2)
    vec_env = as_vec_env(envs)
    assert vec_env.has_attr("gravity")
    assert not vec_env.has_attr("levity")
    vec_env.set_attr("gravity", 5.0, indices=[1])
    assert vec_env.get_attr("gravity", indices=[1]) == [5.0]
    assert vec_env.env_method("get_wrapper_attr", "gravity") == [9.8, 5.0]
    assert vec_env.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [False, False]
    with pytest.raises(ValueError, match="only call all of its environments"):
        vec_env.env_method("get_wrapper_attr", "gravity", indices=[1])
    vec_env.reset()
    vec_env.step_async(np.array([0, 1]))
    with pytest.raises(AlreadyPendingCallError):
        vec_env.step_async(np.array([0, 1]))
    vec_env.reset()
    with pytest.raises(NoAsyncCallError):
        vec_env.step_wait()
    vec_env.close()
    with pytest.raises(ClosedEnvironmentError):
        vec_env.reset()


def test_statistics_of_wrappers_are_reported():
    for mode in AutoresetMode:
        envs = shoal.make(
            "CartPole-v1", 2, backend="inline", autoreset_mode=mode, max_episode_steps=3
        )
        vec_env = as_vec_env(RecordEpisodeStatistics(NormalizeObservation(envs)))
        assert vec_env.has_attr("gravity")
        assert not vec_env.has_attr("levity")
        vec_env.set_attr("gravity", 5.0, indices=[1])
        assert vec_env.get_attr("gravity") == [9.8, 5.0]
        vec_env.seed(1)
        vec_env.reset()
        for _ in range(3):
            *_, infos = vec_env.step(np.array([0, 1]))
        assert [info["episode"]["l"] for info in infos] == [3, 3]
        assert [info["TimeLimit.truncated"] for info in infos] == [True, True]
        assert vec_env.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [True, True]
        assert vec_env.env_method("get_wrapper_attr", "length", indices=1) == [0.5]
        vec_env.close()


def test_statistics_are_in_the_last_info():
    vec_env = as_vec_env(shoal.make("CartPole-v1", num_envs=2, statistics=True))
    vec_env.seed(1)
    vec_env.reset()
    for step in range(1, 100):
        *_, dones, infos = vec_env.step(np.array([0, 1]))
        if dones.any():
            slot = int(np.argmax(dones))
            assert infos[slot]["episode"].keys() == {"r", "l", "t"}
            assert infos[slot]["episode"]["l"] == step
            break
    vec_env.close()


def test_vector_outlives_its_vec_env():
    envs = shoal.make("CartPole-v1", num_envs=2)
    as_vec_env(envs)
    envs.reset()
    envs.close()


def test_vec_env_keeps_its_vector_alive():
    vec_env = as_vec_env(shoal.make("CartPole-v1", num_envs=2))
    assert vec_env.reset().shape == (2, 4)
    vec_env.close()


def test_conversion_of_other_objects_is_refused():
    with pytest.raises(TypeError, match="got CartPoleEnv"):
        as_vec_env(gymnasium.make("CartPole-v1").unwrapped)
    with pytest.raises(TypeError, match="expected a VecEnv"):
        as_vector_env(shoal.make("CartPole-v1"))


def test_vector_that_ignores_the_reset_mask_is_detected():
    envs = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    vec_env = as_vec_env(envs)
    vec_env.seed(0)
    vec_env.reset()
    steps = (vec_env.step(np.array([0, 1])) for _ in range(100))
    with pytest.raises(ResetMaskError, match="CartPoleVectorEnv has also reset slot"):
        list(steps)
    vec_env.close()


@pytest.mark.parametrize("wrong", [[1], [1, 0, 1], [0, 2], ["a", "b"], [0.5, 1.0]], ids=repr)
def test_invalid_actions_do_not_reach_gymnasium_vectors(wrong):
    envs = gymnasium.vector.SyncVectorEnv([Box] * 2)
    envs.single_action_space, envs.action_space = (
        spaces.Discrete(2),
        spaces.MultiDiscrete([2, 2]),
    )
    vec_env = as_vec_env(envs)
    vec_env.reset()
    with pytest.raises((InvalidActionError, ActionTypeError)):
        vec_env.step(wrong)
    assert vec_env.get_attr("steps") == [0, 0]
    vec_env.step([0, 1])
    assert vec_env.get_attr("steps") == [1, 1]
    vec_env.close()


@pytest.mark.parametrize("make", ["ours, wrapped", "theirs"])
def test_options_for_each_environment(make):
    if make == "ours, wrapped":
        envs = VectorWrapper(shoal.make(Box, num_envs=2, backend="inline"))
    else:
        envs = gymnasium.vector.SyncVectorEnv([Box] * 2)
    vec_env = as_vec_env(envs)
    for _ in range(2):
        vec_env.seed(5)
        vec_env.set_options([{"a": 1}, {"a": 2}])
        vec_env.reset()
        assert [info["options"]["a"] for info in vec_env.reset_infos] == [1, 2]
        assert [info["seed"] for info in vec_env.reset_infos] == [5, 6]
    vec_env.close()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_restarted_slot_is_not_reset_again(mode):
    envs = shoal.make(
        Fragile, num_envs=2, backend="process", workers=2, on_crash="restart", autoreset_mode=mode
    )
    vec_env = as_vec_env(envs)
    vec_env.reset()
    vec_env.step([1, 1])
    observations, _, dones, infos = vec_env.step([4, 1])
    assert dones.tolist() == [True, False]
    assert observations[:, 1].tolist() == [-1, 1]
    assert infos[0]["crashed"] is True
    assert infos[0]["terminal_observation"].tolist() == [0, 1]
    assert len(vec_env.get_attr("resets")[0]) == 1
    vec_env.close()


def test_pre_1_0_infos():
    made = shoal.make(
        Box, num_envs=2, backend="inline", autoreset_mode="SameStep", info_format="pre-1.0"
    )
    vec_env = as_vec_env(VectorWrapper(made))
    vec_env.reset()
    *_, infos = vec_env.step([4, 0])
    assert infos[0]["terminal_observation"].tolist() == [0, 4]
    assert vec_env.reset_infos[0].keys() == {"seed", "options"}
    vec_env.close()


def test_statistics_do_not_overwrite_a_monitor():
    made = shoal.make(lambda: Monitor(Box()), num_envs=2, backend="inline", statistics=True)
    vec_env = as_vec_env(made)
    vec_env.reset()
    with pytest.raises(ValueError, match="would overwrite the info 'episode'"):
        vec_env.step([4, 0])
    vec_env.close()


class TestAsVectorEnv:
    def test_reset_infos_of_wrapped_vec_envs(self):
        envs = as_vector_env(original.VecMonitor(original.DummyVecEnv([Box] * 2)))
        _, infos = envs.reset(seed=3)
        assert infos["seed"].tolist() == [3, 4]
        envs.close()

    @pytest.mark.parametrize("library", [shoal.sb3, original], ids=["ours", "theirs"])
    def test_equals_a_gymnasium_vector(self, library):
        envs = as_vector_env(library.DummyVecEnv(random_envs()))
        reference = gymnasium.vector.SyncVectorEnv(
            random_envs(), autoreset_mode=AutoresetMode.SAME_STEP
        )
        assert isinstance(envs, gymnasium.vector.VectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        assert envs.observation_space == reference.observation_space
        assert envs.single_action_space == reference.single_action_space
        observations, _ = envs.reset(seed=4)
        expected, _ = reference.reset(seed=4)
        assert_identical(observations, expected)
        for _ in range(60):
            got = envs.step(np.zeros(3, np.int64))
            expected = reference.step(np.zeros(3, np.int64))
            assert_identical(got[0], expected[0])
            np.testing.assert_allclose(got[1], expected[1], rtol=1e-6)
            done = expected[2] | expected[3]
            assert_identical(got[2] | got[3], done)
            assert_identical(got[2], expected[2])
            if done.any():
                assert_identical(got[4]["_final_obs"], expected[4]["_final_obs"])
                for slot in np.flatnonzero(done):
                    assert_identical(got[4]["final_obs"][slot], expected[4]["final_obs"][slot])
        envs.close()
        reference.close()

    def test_infos_equal_those_of_shoal(self):
        envs = as_vector_env(DummyVecEnv(random_envs()))
        reference = shoal.make(
            random_envs(), autoreset_mode=AutoresetMode.SAME_STEP, backend="inline"
        )
        assert_identical(envs.reset(seed=4), reference.reset(seed=4))
        for _ in range(60):
            got, expected = (each.step(np.zeros(3, np.int64)) for each in (envs, reference))
            assert_identical(got[4], expected[4])
        envs.close()
        reference.close()

    def test_seeds_options_and_masks(self):
        envs = as_vector_env(make_vec_env("CartPole-v1", n_envs=2))
        one, _ = envs.reset(seed=[9, 4])
        other, _ = envs.reset(seed=[4, 9], options={"low": -0.05, "high": 0.05})
        assert_identical(one[0], other[1])
        envs.reset(options={"reset_mask": np.array([True, True])})
        with pytest.raises(ResetMaskError, match="can only reset all of its environments"):
            envs.reset(options={"reset_mask": np.array([True, False])})
        with pytest.raises(ValueError, match="-1"):
            envs.reset(seed=-1)
        envs.close()

    def test_structured_actions(self):
        envs = as_vector_env(DummyVecEnv([partial(ProbeEnv, label) for label in range(2)]))
        envs.reset(seed=1)
        envs.action_space.seed(1)
        _, rewards, *_ = envs.step(envs.action_space.sample())
        assert rewards.dtype == np.float64
        assert envs.call("label") == (0, 1)
        envs.set_attr("label", [5, 6])
        assert envs.get_attr("label") == (5, 6)
        assert envs.call("get_wrapper_attr", "label") == (5, 6)
        with pytest.raises(ValueError, match="3 values for 2"):
            envs.set_attr("label", [1, 2, 3])
        envs.close()

    def test_as_vector_env_of_wrapped_vec_envs(self):
        factories = [partial(gymnasium.make, "Pendulum-v1", render_mode="rgb_array")] * 2
        vec_env = VecNormalize(DummyVecEnv(factories))
        envs = as_vector_env(vec_env)
        observations, _ = envs.reset(seed=1)
        assert_identical(vec_env.normalize_obs(vec_env.get_original_obs()), observations)
        assert [frame.shape for frame in envs.render()] == [(500, 500, 3)] * 2
        envs.close()

    def test_round_trip(self):
        envs = as_vector_env(as_vec_env(shoal.make("CartPole-v1", num_envs=2)))
        reference = shoal.make("CartPole-v1", num_envs=2, autoreset_mode="SameStep")
        assert_identical(envs.reset(seed=2), reference.reset(seed=2))
        for _ in range(40):
            got, expected = (each.step(np.array([0, 1])) for each in (envs, reference))
            assert_identical(got[:4], expected[:4])
        envs.close()
        reference.close()
