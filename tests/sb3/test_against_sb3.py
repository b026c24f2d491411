"""With equal seeds and actions, results equal those of Stable-Baselines3's classes."""

from copy import deepcopy
from functools import partial

import gymnasium
import numpy as np
import pytest
import stable_baselines3.common.vec_env as sb3
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env

import shoal.sb3
from shoal.testing import assert_identical
from tests.random_environments import RandomEnv
from tests.sb3.environments import Picture
from tests.sb3.forking import BOTH
from tests.strategies import FIXED


def play(vec_env, steps, seed=0, seeds=7):
    """Yield the results of a vector, and the infos of its resets."""
    space = deepcopy(vec_env.action_space)
    space.seed(seed)
    vec_env.seed(seeds)
    vec_env.set_options({"level": 3})
    yield vec_env.reset()
    for _ in range(steps):
        actions = [space.sample() for _ in range(vec_env.num_envs)]
        if not isinstance(space, spaces.Dict | spaces.Tuple):
            actions = np.array(actions)
        observations, rewards, dones, infos = vec_env.step(actions)
        for info in infos:
            info.get("episode", {}).pop("t", None)
        yield observations, rewards, dones, infos
        yield list(vec_env.unwrapped.reset_infos)
    yield vec_env.reset()


def assert_equal_runs(own, reference, steps, **seeds):
    """Compare two vectors, and close them."""
    for got, expected in zip(
        play(own, steps, **seeds), play(reference, steps, **seeds), strict=True
    ):
        assert_identical(got, expected)
    own.close()
    reference.close()


@pytest.mark.parametrize("name", ["DummyVecEnv", "SubprocVecEnv"])
@pytest.mark.parametrize(
    "env_id", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "MountainCar-v0"]
)
def test_environments(name, env_id):
    factories = [partial(gymnasium.make, env_id, max_episode_steps=23)] * 3
    assert_equal_runs(getattr(shoal.sb3, name)(factories), sb3.DummyVecEnv(factories), steps=400)


FLAT = FIXED | st.dictionaries(st.sampled_from("abc"), FIXED, min_size=1).map(spaces.Dict)
FLAT = FLAT | st.lists(FIXED, min_size=1, max_size=3).map(lambda parts: spaces.Tuple(tuple(parts)))


def as_arrays(actions):
    """Convert NumPy scalars in actions to arrays, which are equivalent."""
    if isinstance(actions, list | tuple):
        return type(actions)(map(as_arrays, actions))
    if isinstance(actions, dict):
        return {key: as_arrays(value) for key, value in actions.items()}
    return np.asarray(actions)


@settings(max_examples=60, deadline=None)
@given(observations=FLAT, actions=FLAT, count=st.integers(1, 4), seed=st.integers(0, 99))
def test_random_spaces(observations, actions, count, seed):
    factories = [partial(RandomEnv, observations, actions) for _ in range(count)]
    own, reference = shoal.sb3.DummyVecEnv(factories), sb3.DummyVecEnv(factories)
    assert_equal_runs(own, reference, steps=30, seed=seed)
    for mine, theirs in zip(own.envs, reference.envs, strict=True):
        assert_identical(as_arrays(mine.received), as_arrays(theirs.received))


@settings(max_examples=8, deadline=None)
@given(observations=FLAT, actions=FLAT, seed=st.integers(0, 99))
def test_random_spaces_in_workers(observations, actions, seed):
    factories = [partial(RandomEnv, observations, actions) for _ in range(3)]
    own = shoal.sb3.SubprocVecEnv(factories, start_method="fork")
    assert_equal_runs(own, sb3.DummyVecEnv(factories), steps=20, seed=seed)


WRAPPERS = {
    "VecNormalize": [
        {},
        {"norm_obs": False},
        {"norm_reward": False, "clip_obs": 0.5, "gamma": 0.9},
    ],
    "VecFrameStack": [{"n_stack": 1}, {"n_stack": 2}, {"n_stack": 3}, {"n_stack": 5}],
    "VecMonitor": [{}],
    "VecCheckNan": [{"raise_exception": True}],
}


@pytest.mark.parametrize(
    ("wrapper", "arguments"),
    [(name, arguments) for name, several in WRAPPERS.items() for arguments in several],
)
@BOTH
def test_wrappers(vec_env_class, wrapper, arguments):
    factories = [partial(gymnasium.make, "CartPole-v1")] * 3
    own = getattr(shoal.sb3, wrapper)(vec_env_class(factories), **arguments)
    reference = getattr(sb3, wrapper)(sb3.DummyVecEnv(factories), **arguments)
    assert own.observation_space == reference.observation_space
    assert_equal_runs(own, reference, steps=300)


IMAGE_WRAPPERS = {
    "stacked last": lambda lib, venv: lib.VecFrameStack(venv, 4),
    "stacked first": lambda lib, venv: lib.VecFrameStack(venv, 4, channels_order="first"),
    "transposed": lambda lib, venv: lib.VecTransposeImage(venv),
    "transposed, stacked": lambda lib, venv: lib.VecFrameStack(lib.VecTransposeImage(venv), 3),
    "stacked, transposed": lambda lib, venv: lib.VecTransposeImage(lib.VecFrameStack(venv, 2)),
    "skipped": lambda lib, venv: lib.VecTransposeImage(venv, skip=True),
    "normalized": lambda lib, venv: lib.VecNormalize(venv),
    "all": lambda lib, venv: lib.VecMonitor(
        lib.VecNormalize(lib.VecTransposeImage(lib.VecFrameStack(lib.VecCheckNan(venv), 2))),
        info_keywords=("TimeLimit.truncated",),
    ),
}


@pytest.mark.parametrize("wrap", IMAGE_WRAPPERS.values(), ids=IMAGE_WRAPPERS)
@pytest.mark.parametrize("shape", [(40, 36, 1), (36, 40, 3)], ids=["gray", "colour"])
def test_images(wrap, shape):
    factories = [partial(Picture, shape)] * 3
    own = wrap(shoal.sb3, shoal.sb3.DummyVecEnv(factories))
    reference = wrap(sb3, sb3.DummyVecEnv(factories))
    assert own.observation_space == reference.observation_space
    assert_equal_runs(own, reference, steps=80)


KEYED_WRAPPERS = {
    "transposed": lambda lib, venv: lib.VecTransposeImage(venv),
    "extracted": lambda lib, venv: lib.VecExtractDictObs(venv, "speed"),
    "normalized": lambda lib, venv: lib.VecNormalize(venv, norm_obs_keys=["speed", "image"]),
    "stacked": lambda lib, venv: lib.VecFrameStack(
        venv, 3, channels_order={"image": "first", "speed": "last", "gear": None}
    ),
}


@pytest.mark.parametrize("wrap", KEYED_WRAPPERS.values(), ids=KEYED_WRAPPERS)
@BOTH
def test_dicts(vec_env_class, wrap):
    if wrap is KEYED_WRAPPERS["stacked"]:
        factories = [partial(RandomEnv, STACKABLE, spaces.Discrete(2))] * 3
    else:
        factories = [partial(Picture, keyed=True)] * 3
    own = wrap(shoal.sb3, vec_env_class(factories))
    reference = wrap(sb3, sb3.DummyVecEnv(factories))
    assert own.observation_space == reference.observation_space
    assert_equal_runs(own, reference, steps=80)


STACKABLE = spaces.Dict(
    image=spaces.Box(0, 255, (36, 40, 1), np.uint8),
    speed=spaces.Box(-9, 9, (2,)),
    gear=spaces.Box(0, 4, (1,), np.int64),
)


@BOTH
def test_make_vec_env(vec_env_class, tmp_path):
    def made(make, cls, folder):
        return make(
            "Acrobot-v1",
            n_envs=3,
            seed=5,
            start_index=2,
            monitor_dir=str(tmp_path / folder),
            wrapper_class=gymnasium.wrappers.TimeAwareObservation,
            env_kwargs={"max_episode_steps": 30},
            vec_env_cls=cls,
            wrapper_kwargs={"flatten": True},
        )

    own = made(shoal.sb3.make_vec_env, vec_env_class, "own")
    reference = made(make_vec_env, sb3.DummyVecEnv, "reference")
    samples = zip(own.get_attr("action_space"), reference.get_attr("action_space"), strict=True)
    assert all(mine.sample() == theirs.sample() for mine, theirs in samples)
    assert own.render_mode == reference.render_mode == "rgb_array"
    assert own.metadata["render_modes"]
    observations = own.reset(), reference.reset()
    assert_identical(*observations)
    for _ in range(100):
        results = own.step(np.array([0, 1, 2])), reference.step(np.array([0, 1, 2]))
        for _, _, _, infos in results:
            for info in infos:
                info.get("episode", {}).pop("t", None)
        assert_identical(*results)
    own.close()
    reference.close()
    files = [
        sorted(file.name for file in (tmp_path / side).iterdir()) for side in ("own", "reference")
    ]
    assert files[0] == files[1] == ["2.monitor.csv", "3.monitor.csv", "4.monitor.csv"]


@BOTH
def test_atari(vec_env_class):
    import ale_py

    gymnasium.register_envs(ale_py)
    from stable_baselines3.common.env_util import make_atari_env

    own = shoal.sb3.make_atari_env("BreakoutNoFrameskip-v4", 2, vec_env_cls=vec_env_class)
    reference = make_atari_env("BreakoutNoFrameskip-v4", 2)
    assert_equal_runs(shoal.sb3.VecFrameStack(own, 4), sb3.VecFrameStack(reference, 4), steps=60)
