"""Results equal those of the wrappers of gymnasium.wrappers.vector, bit for bit."""

import gymnasium
import gymnasium.wrappers.vector as gymnasium_wrappers
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from shoal.vector import SyncVectorEnv, wrappers
from tests.vector.wrappers.playing import (
    GYMNASIUM_IS_NEW,
    IMAGE,
    PAIR,
    PARTS,
    factory_of,
    frozen_lake,
    play,
    random_env,
)

CONTINUOUS = spaces.Box(-2, 3, (2,), np.float32)
INTEGERS = spaces.Box(0, 9, (3,), np.int64)


def tripled(values):
    return values * 3


def without_times(result):
    infos = result[-1]
    if "episode" not in infos:
        return result
    episode = {key: value for key, value in infos["episode"].items() if key != "t"}
    return (*result[:-1], {**infos, "episode": episode})


STATELESS = [
    ("TransformObservation", factory_of("CartPole-v1"), {"func": tripled}),
    (
        "TransformObservation",
        factory_of("CartPole-v1"),
        {"func": lambda obs: obs[:, :2], "single_observation_space": spaces.Box(-9, 9, (2,))},
    ),
    ("FilterObservation", random_env(PARTS), {"filter_keys": ["c", "a"]}),
    ("FilterObservation", random_env(PAIR), {"filter_keys": [1]}),
    ("FilterObservation", random_env(PAIR), {"filter_keys": [-1, 0]}),
    ("FlattenObservation", random_env(IMAGE), {}),
    ("FlattenObservation", random_env(PARTS), {}),
    ("FlattenObservation", frozen_lake, {}),
    ("GrayscaleObservation", random_env(IMAGE), {}),
    ("GrayscaleObservation", random_env(IMAGE), {"keep_dim": True}),
    ("ResizeObservation", random_env(IMAGE), {"shape": (4, 9)}),
    (
        "ResizeObservation",
        random_env(spaces.Box(0, 255, (6, 6), np.uint8)),
        {"shape": (3, 2)},
    ),
    ("ReshapeObservation", random_env(IMAGE), {"shape": (5, 21)}),
    ("RescaleObservation", factory_of("MountainCar-v0"), {"min_obs": -5.0, "max_obs": 5.0}),
    ("RescaleObservation", random_env(INTEGERS), {"min_obs": 0, "max_obs": 90}),
    ("DtypeObservation", factory_of("CartPole-v1"), {"dtype": np.float64}),
    ("DtypeObservation", random_env(CONTINUOUS), {"dtype": np.int8}),
    ("DtypeObservation", random_env(spaces.MultiBinary(4)), {"dtype": np.float32}),
    ("TransformAction", factory_of("Pendulum-v1"), {"func": lambda actions: actions / 2}),
    (
        "VectorizeTransformAction",
        frozen_lake,
        {
            "wrapper": gymnasium.wrappers.TransformAction,
            "func": lambda a: 3 - a,
            "action_space": None,
        },
    ),
    ("ClipAction", factory_of("Pendulum-v1"), {}),
    ("RescaleAction", factory_of("Pendulum-v1"), {"min_action": -0.5, "max_action": 0.25}),
    ("RescaleAction", factory_of("Pendulum-v1"), {"min_action": -2.0, "max_action": 2.0}),
    ("TransformReward", factory_of("Pendulum-v1"), {"func": tripled}),
    (
        "VectorizeTransformReward",
        factory_of("Pendulum-v1"),
        {"wrapper": gymnasium.wrappers.TransformReward, "func": tripled},
    ),
    ("ClipReward", factory_of("Pendulum-v1"), {"min_reward": -3.0, "max_reward": -1}),
    ("ClipReward", factory_of("Pendulum-v1"), {"max_reward": np.float64(-1)}),
    ("DictInfoToList", random_env(PAIR), {}),
    ("DictInfoToList", frozen_lake, {}),
]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize(("name", "factory", "kwargs"), STATELESS)
@pytest.mark.filterwarnings("ignore:.*precision lowered", "ignore:.*single observation space")
def test_stateless_wrappers(name, factory, kwargs, mode):
    play(
        getattr(wrappers, name)(SyncVectorEnv([factory] * 3, autoreset_mode=mode), **kwargs),
        getattr(gymnasium_wrappers, name)(
            gymnasium.vector.SyncVectorEnv([factory] * 3, autoreset_mode=mode), **kwargs
        ),
    )


def test_grayscale_of_every_color():
    space = spaces.Box(0, 255, (256, 256, 3), np.uint8)
    with wrappers.GrayscaleObservation(SyncVectorEnv([random_env(space)])) as envs:
        colours = np.indices((1, 256, 256), np.uint8).transpose(1, 2, 3, 0).copy()
        for red in range(256):
            colours[..., 0] = red
            assert np.array_equal(envs.observations(colours)[0], envs.wrapper.func(colours[0]))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "MountainCarContinuous-v0", "Acrobot-v1"])
def test_normalized_observations(env_id):
    factories = [factory_of(env_id)] * 4
    ours = wrappers.NormalizeObservation(SyncVectorEnv(factories))
    theirs = gymnasium_wrappers.NormalizeObservation(gymnasium.vector.SyncVectorEnv(factories))
    theirs.single_observation_space = ours.single_observation_space  # not set by Gymnasium 1.2.2
    theirs.observation_space = ours.observation_space
    play(ours, theirs, steps=400, masks=0)
    assert np.array_equal(ours.obs_rms.mean, theirs.obs_rms.mean)
    assert np.array_equal(ours.obs_rms.var, theirs.obs_rms.var)
    assert ours.obs_rms.count == theirs.obs_rms.count


@pytest.mark.skipif(not GYMNASIUM_IS_NEW, reason="casts to float32 since Gymnasium 1.3")
@pytest.mark.parametrize(
    "space", [IMAGE, INTEGERS, spaces.Discrete(7), spaces.Box(-1, 1, (2, 3), np.float64)]
)
def test_normalized_observations_of_other_dtypes(space):
    factories = [random_env(space)] * 3
    play(
        wrappers.NormalizeObservation(SyncVectorEnv(factories)),
        gymnasium_wrappers.NormalizeObservation(gymnasium.vector.SyncVectorEnv(factories)),
        masks=0,
    )


def test_normalized_observations_with_frozen_statistics():
    factories = [factory_of("CartPole-v1")] * 3
    ours = wrappers.NormalizeObservation(SyncVectorEnv(factories), epsilon=0.01)
    theirs = gymnasium_wrappers.NormalizeObservation(
        gymnasium.vector.SyncVectorEnv(factories), epsilon=0.01
    )
    for envs in (ours, theirs):
        envs.reset(seed=1)
        envs.step(np.array([0, 1, 1]))
        envs.update_running_mean = False
        envs.single_observation_space = envs.observation_space = None
    play(ours, theirs, masks=0)


@pytest.mark.skipif(not GYMNASIUM_IS_NEW, reason="counted resets as steps before Gymnasium 1.3")
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("env_id", ["Pendulum-v1", "CartPole-v1"])
def test_normalized_rewards(env_id, mode):
    factories = [factory_of(env_id)] * 4
    ours = wrappers.NormalizeReward(SyncVectorEnv(factories, autoreset_mode=mode), gamma=0.9)
    theirs = gymnasium_wrappers.NormalizeReward(
        gymnasium.vector.SyncVectorEnv(factories, autoreset_mode=mode), gamma=0.9
    )
    if mode is AutoresetMode.DISABLED:  # Gymnasium's wrapper clears all slots in a masked reset
        assert_equal_rewards(ours, theirs, steps=11)
        return
    play(ours, theirs, steps=250, masks=0)
    assert ours.return_rms.var == theirs.return_rms.var
    assert np.array_equal(ours.accumulated_reward, theirs.accumulated_reward)
    assert ours.normalize(2.5) == theirs.normalize(2.5)


def assert_equal_rewards(ours, theirs, steps):
    for seed in range(4):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        theirs.action_space.seed(seed)
        for _ in range(steps):
            action = theirs.action_space.sample()
            results = ours.step(action), theirs.step(action)
            assert np.array_equal(results[0][1], results[1][1])
            if (results[0][2] | results[0][3]).any():
                break


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    "factory", [factory_of("Pendulum-v1"), factory_of("CartPole-v1"), frozen_lake]
)
def test_episode_statistics(factory, mode):
    if mode is AutoresetMode.SAME_STEP and not GYMNASIUM_IS_NEW:
        pytest.skip("Gymnasium before 1.3 lost a step of each episode")
    factories = [factory] * 4
    ours = wrappers.RecordEpisodeStatistics(
        SyncVectorEnv(factories, autoreset_mode=mode), buffer_length=9
    )
    theirs = gymnasium_wrappers.RecordEpisodeStatistics(
        gymnasium.vector.SyncVectorEnv(factories, autoreset_mode=mode), buffer_length=9
    )
    # Gymnasium's vector removes the mask from the options before Gymnasium's wrapper reads it.
    original_reset = theirs.env.reset

    def reset(*, seed, options):
        return original_reset(seed=seed, options=options and dict(options))

    theirs.env.reset = reset
    play(ours, theirs, steps=250, seen=without_times)
    assert ours.episode_count == theirs.episode_count > 20
    assert ours.return_queue == theirs.return_queue
    assert ours.length_queue == theirs.length_queue
    assert len(ours.time_queue) == 9
    assert np.array_equal(ours.episode_returns, theirs.episode_returns)
    assert np.array_equal(ours.episode_lengths, theirs.episode_lengths)
    assert ours.episode_returns.dtype == theirs.episode_returns.dtype


@pytest.mark.parametrize(
    ("name", "factory", "kwargs"),
    [
        ("FilterObservation", random_env(PARTS), {"filter_keys": ["a", "z"]}),
        ("FilterObservation", random_env(PARTS), {"filter_keys": []}),
        ("FilterObservation", random_env(PAIR), {"filter_keys": ["a"]}),
        ("FilterObservation", random_env(PAIR), {"filter_keys": [2]}),
        ("FilterObservation", random_env(IMAGE), {"filter_keys": ["a"]}),
        ("GrayscaleObservation", random_env(CONTINUOUS), {}),
        ("ResizeObservation", random_env(IMAGE), {"shape": (3,)}),
        ("ResizeObservation", random_env(IMAGE), {"shape": (0, 3)}),
        ("ReshapeObservation", random_env(IMAGE), {"shape": (3, 3)}),
        ("RescaleObservation", factory_of("CartPole-v1"), {"min_obs": 0.0, "max_obs": 1.0}),
        ("DtypeObservation", random_env(PARTS), {"dtype": np.float32}),
        ("ClipAction", factory_of("CartPole-v1"), {}),
        ("RescaleAction", factory_of("CartPole-v1"), {"min_action": 0, "max_action": 1}),
        ("RescaleAction", factory_of("Pendulum-v1"), {"min_action": 2, "max_action": 1}),
        ("ClipReward", factory_of("CartPole-v1"), {}),
        ("ClipReward", factory_of("CartPole-v1"), {"min_reward": 2, "max_reward": 1}),
    ],
)
def test_invalid_arguments_raise_the_same_errors(name, factory, kwargs):
    reference = gymnasium.vector.SyncVectorEnv([factory] * 2)
    with SyncVectorEnv([factory] * 2) as envs:
        with pytest.raises(Exception) as theirs:  # noqa: PT011
            getattr(gymnasium_wrappers, name)(reference, **kwargs)
        with pytest.raises(theirs.type) as ours:
            getattr(wrappers, name)(envs, **kwargs)
        assert str(ours.value) == str(theirs.value)
        envs.reset(seed=0)


def test_all_names_are_available():
    assert set(gymnasium_wrappers.__all__) <= set(wrappers.__all__)
    for name in gymnasium_wrappers.__all__:
        if "To" not in name.replace("DictInfoToList", "") and name != "ArrayConversion":
            assert getattr(wrappers, name).__module__.startswith("shoal.vector.wrappers.")


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (
            "VectorObservationWrapper",
            [name for name in gymnasium_wrappers.__all__ if name.endswith("Observation")],
        ),
        ("VectorActionWrapper", ["TransformAction", "ClipAction", "RescaleAction"]),
        ("VectorRewardWrapper", ["TransformReward", "ClipReward", "VectorizeTransformReward"]),
        ("VectorWrapper", ["RecordEpisodeStatistics", "NormalizeReward", "RecordVideo"]),
    ],
)
def test_base_classes(base, names):
    for name in names:
        assert issubclass(getattr(wrappers, name), getattr(gymnasium.vector, base))
        assert issubclass(getattr(wrappers, name), getattr(wrappers, base))
        assert issubclass(getattr(wrappers, name), gymnasium.vector.VectorWrapper)
