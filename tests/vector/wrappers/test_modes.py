"""In every autoreset mode, results equal those of single environments that are wrapped."""

import gymnasium
import gymnasium.wrappers as single_wrappers
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv, wrappers
from tests.strategies import FIXED
from tests.strategies import _containers as containers
from tests.vector.wrappers.playing import (
    IMAGE,
    PAIR,
    PARTS,
    factory_of,
    frozen_lake,
    play,
    random_env,
)

HALVES = spaces.Box(-np.inf, np.inf, (4,), np.float32)


def halved(values):
    return values / 2


CASES = [
    ("FilterObservation", random_env(PARTS), {"filter_keys": ["c", "a"]}),
    ("FilterObservation", random_env(PAIR), {"filter_keys": [1]}),
    ("FlattenObservation", random_env(PARTS), {}),
    ("FlattenObservation", random_env(IMAGE), {}),
    ("GrayscaleObservation", random_env(IMAGE), {}),
    ("ResizeObservation", random_env(IMAGE), {"shape": (4, 9)}),
    ("ReshapeObservation", random_env(IMAGE), {"shape": (5, 21)}),
    ("RescaleObservation", factory_of("MountainCar-v0"), {"min_obs": -5.0, "max_obs": 5.0}),
    ("DtypeObservation", factory_of("CartPole-v1"), {"dtype": np.float64}),
    ("DtypeObservation", frozen_lake, {"dtype": np.float32}),
    ("ClipAction", factory_of("Pendulum-v1"), {}),
    ("RescaleAction", factory_of("Pendulum-v1"), {"min_action": -0.5, "max_action": 0.25}),
    ("ClipReward", factory_of("Pendulum-v1"), {"min_reward": -3.0, "max_reward": 0}),
    ("FrameStackObservation", factory_of("CartPole-v1"), {"stack_size": 4}),
    ("FrameStackObservation", frozen_lake, {"stack_size": 3, "padding_type": 7}),
    ("FrameStackObservation", random_env(IMAGE), {"stack_size": 1}),
    ("FrameStackObservation", random_env(PARTS), {"stack_size": 3, "padding_type": "zero"}),
    ("FrameStackObservation", random_env(PARTS), {"stack_size": 2}),
    ("FrameStackObservation", random_env(PAIR), {"stack_size": 5}),
    (
        "FrameStackObservation",
        random_env(spaces.Box(1, 2, (), np.float16)),
        {"stack_size": 2, "padding_type": "zero"},
    ),
    (
        "FrameStackObservation",
        random_env(spaces.Box(0, 1, (0, 2), np.int8)),
        {"stack_size": 2},
    ),
]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(("name", "factory", "kwargs"), CASES)
@pytest.mark.filterwarnings("ignore:.*precision lowered")
def test_equals_wrapped_single_environments(name, factory, kwargs, mode):
    one = getattr(single_wrappers, name)
    play(
        getattr(wrappers, name)(SyncVectorEnv([factory] * 3, autoreset_mode=mode), **kwargs),
        gymnasium.vector.SyncVectorEnv([lambda: one(factory(), **kwargs)] * 3, autoreset_mode=mode),
    )


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("FrameStackObservation", {"stack_size": 3}),
        ("FlattenObservation", {}),
        ("TransformObservation", {"func": np.negative}),
    ],
)
def test_wrapping_gymnasium_vectors(name, kwargs, mode):
    one = getattr(single_wrappers, name)
    extra = {"observation_space": None} if name == "TransformObservation" else {}
    vector = gymnasium.vector.SyncVectorEnv
    envs = getattr(wrappers, name)(
        vector([factory_of("CartPole-v1")] * 3, autoreset_mode=mode), **kwargs
    )
    assert envs.get_attr("gravity") == (9.8, 9.8, 9.8)
    factories = [lambda: one(factory_of("CartPole-v1")(), **kwargs, **extra)] * 3
    play(envs, vector(factories, autoreset_mode=mode))


@settings(max_examples=25, deadline=None)
@given(
    space=st.recursive(FIXED, containers, max_leaves=4),
    mode=st.sampled_from(AutoresetMode),
    stack_size=st.integers(1, 4),
    padding=st.sampled_from(["reset", "zero", "custom"]),
    seed=st.integers(0, 2**31),
)
def test_stacks_of_random_spaces(space, mode, stack_size, padding, seed):
    if padding == "custom":
        space.seed(seed)
        padding = space.sample()

    def one():
        return single_wrappers.FrameStackObservation(
            random_env(space)(), stack_size, padding_type=padding
        )

    vector = SyncVectorEnv([random_env(space)] * 2, autoreset_mode=mode)
    play(
        wrappers.FrameStackObservation(vector, stack_size, padding_type=padding),
        gymnasium.vector.SyncVectorEnv([one] * 2, autoreset_mode=mode),
        steps=15,
        seed=seed,
    )


@pytest.mark.parametrize("mode", AutoresetMode)
def test_transform_function_is_applied_to_final_observations(mode):
    rows = []

    def watched(values):
        rows.append(len(values))
        return halved(values)

    def one():
        env = factory_of("CartPole-v1")()
        return single_wrappers.TransformObservation(env, halved, HALVES)

    vector = SyncVectorEnv([factory_of("CartPole-v1")] * 3, autoreset_mode=mode)
    play(
        wrappers.TransformObservation(vector, watched, single_observation_space=HALVES),
        gymnasium.vector.SyncVectorEnv([one] * 3, autoreset_mode=mode),
    )
    assert set(rows) == {3}


@pytest.mark.parametrize("mode", AutoresetMode)
def test_wrapper_without_a_function(mode):
    def one():
        return single_wrappers.DiscretizeObservation(factory_of("MountainCar-v0")(), bins=9)

    vector = SyncVectorEnv([factory_of("MountainCar-v0")] * 3, autoreset_mode=mode)
    play(
        wrappers.VectorizeTransformObservation(
            vector, single_wrappers.DiscretizeObservation, bins=9
        ),
        gymnasium.vector.SyncVectorEnv([one] * 3, autoreset_mode=mode),
    )


@pytest.mark.parametrize("info_format", ["list", "pre-1.0"])
def test_final_observations_in_other_info_formats(info_format):
    def vector(form):
        return shoal.make(
            factory_of("CartPole-v1"),
            num_envs=3,
            backend="inline",
            autoreset_mode=AutoresetMode.SAME_STEP,
            info_format=form,
        )

    def wrapped(form):
        envs = wrappers.TransformObservation(vector(form), halved, single_observation_space=HALVES)
        envs = wrappers.NormalizeObservation(wrappers.FrameStackObservation(envs, 2))
        return wrappers.ReshapeObservation(envs, (4, 2))

    ours, reference = wrapped(info_format), wrapped("dict")
    ours.reset(seed=5)
    reference.reset(seed=5)
    finals = 0
    for _ in range(60):
        actions = reference.action_space.sample()
        *_, infos = ours.step(actions)
        *_, expected = reference.step(actions)
        for slot in np.flatnonzero(expected.get("_final_obs", [])):
            finals += 1
            if info_format == "list":
                final = infos[slot]["final_obs"]
            else:
                final = infos["final_observation"][slot]
            assert_identical(final, expected["final_obs"][slot])
            assert final.shape == (4, 2)
    assert finals > 5


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("copy", [True, False])
def test_arguments_and_results_are_not_modified(mode, copy):
    envs = SyncVectorEnv([factory_of("Pendulum-v1")] * 3, autoreset_mode=mode, copy=copy)
    envs = wrappers.ClipAction(wrappers.ClipReward(envs, -2, -1))
    envs = wrappers.VectorizeTransformReward(
        envs, single_wrappers.TransformReward, func=lambda reward: reward + 1
    )
    envs = wrappers.ReshapeObservation(wrappers.FlattenObservation(envs), (3, 1))
    envs = wrappers.RecordEpisodeStatistics(wrappers.FrameStackObservation(envs, 2))
    envs.reset(seed=1)
    kept = []
    for _ in range(40):
        actions = envs.action_space.sample().clip(-5, 5)
        before = actions.copy()
        result = envs.step(actions)
        assert_identical(actions, before)
        kept.append((result, [np.copy(part) for part in result[:4]], str(result[4])))
        if mode is AutoresetMode.DISABLED and (result[2] | result[3]).any():
            envs.reset(options={"reset_mask": result[2] | result[3]})
    for result, copies, infos in kept:
        # With copy=False the flags are views of the wrapped vector.
        for part, expected in zip(result[: 4 if copy else 2], copies, strict=False):
            assert_identical(part, expected)
        assert str(result[4]) == infos


class Inner(wrappers.VectorWrapper):
    """Records its results, to detect modifications."""

    def step(self, actions):
        self.results = self.env.step(actions)
        self.copies = [np.copy(part) for part in self.results[:4]]
        self.infos = str(self.results[4])
        return self.results


@pytest.mark.parametrize(
    "wrap",
    [
        lambda envs: wrappers.ClipReward(envs, 0.0, 0.5),
        lambda envs: wrappers.VectorizeTransformReward(
            envs, single_wrappers.TransformReward, func=lambda reward: reward + 1
        ),
        lambda envs: wrappers.FrameStackObservation(envs, 3),
        lambda envs: wrappers.NormalizeObservation(envs),
        lambda envs: wrappers.NormalizeReward(envs),
        lambda envs: wrappers.RecordEpisodeStatistics(envs),
        lambda envs: wrappers.FlattenObservation(envs),
        lambda envs: wrappers.DtypeObservation(envs, np.float32),
        lambda envs: wrappers.TransformObservation(envs, lambda observations: observations),
        lambda envs: wrappers.VectorizeTransformObservation(
            envs,
            single_wrappers.TransformObservation,
            func=lambda obs: obs + 1,
            observation_space=None,
        ),
    ],
)
def test_results_of_the_wrapped_vector_are_not_modified(wrap):
    inner = Inner(SyncVectorEnv([factory_of("CartPole-v1")] * 3, autoreset_mode="SameStep"))
    envs = wrap(inner)
    envs.reset(seed=0)
    for _ in range(30):
        observations, *_ = envs.step(envs.action_space.sample())
        if not isinstance(envs, wrappers.TransformObservation):
            observations[:] = 0 if observations is not inner.results[0] else observations
        for part, expected in zip(inner.results, inner.copies, strict=False):
            assert_identical(part, expected)
        assert str(inner.results[4]) == inner.infos


def test_filtered_parts_are_copied():
    with wrappers.FilterObservation(SyncVectorEnv([random_env(PARTS)] * 2), ["b", "c"]) as envs:
        raw, _ = envs.env.reset(seed=0)
        kept = envs.observations(raw)
        assert not np.shares_memory(kept["b"], raw["b"])
        assert not np.shares_memory(kept["c"][0], raw["c"][0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_actions_of_an_unchanged_space_keep_their_dtype(dtype):
    with wrappers.VectorizeTransformAction(
        SyncVectorEnv([factory_of("Pendulum-v1")] * 2),
        single_wrappers.TransformAction,
        func=halved,
        action_space=None,
    ) as envs:
        actions = np.ones((2, 1), dtype)
        assert_identical(envs.actions(actions), np.full((2, 1), 0.5, dtype))
        assert_identical(actions, np.ones((2, 1), dtype))
