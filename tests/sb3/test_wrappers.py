"""Features of the wrappers that Stable-Baselines3's do not have, and errors."""

import pickle
from functools import partial

import gymnasium
import imageio.v3 as imageio
import numpy as np
import pytest
import stable_baselines3.common.vec_env as sb3
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd as OriginalStatistics

import shoal.sb3
from shoal.sb3 import (
    DummyVecEnv,
    StackedObservations,
    VecCheckNan,
    VecEnv,
    VecExtractDictObs,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
    VecVideoRecorder,
    is_vecenv_wrapped,
    sync_envs_normalization,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)
from shoal.testing import assert_identical
from tests.random_environments import RandomEnv

KEYED = spaces.Dict(
    image=spaces.Box(0, 255, (36, 40, 3), np.uint8),
    speed=spaces.Box(-9, 9, (2,)),
    gear=spaces.Discrete(4),
)


def pendulums(count=2, **arguments):
    return [partial(gymnasium.make, "Pendulum-v1", **arguments)] * count


def random_envs(space, count=2):
    return [partial(RandomEnv, space, spaces.Discrete(2))] * count


class Scripted(VecEnv):
    """A vector that returns given results in a loop."""

    def __init__(self, *results, space=None):
        self.results = list(results)
        count = len(results[0][1])
        super().__init__(count, space or spaces.Box(-9, 9, (2,)), spaces.Box(-9, 9, (1,)))

    def reset(self):
        return self.results[0][0]

    def step_async(self, actions):
        pass

    def step_wait(self):
        self.results.append(self.results.pop(0))
        return self.results[-1]

    def get_attr(self, attr_name, indices=None):
        return [None] * len(self.results[0][1])

    def close(self):
        pass

    set_attr = env_method = env_is_wrapped = lambda self, *_, **__: [False]


ALL = {
    "VecFrameStack": partial(VecFrameStack, n_stack=2),
    "VecNormalize": VecNormalize,
    "VecCheckNan": VecCheckNan,
    "VecMonitor": VecMonitor,
}


@pytest.mark.parametrize("name", ALL)
def test_minimal_vectors_can_be_wrapped(name):
    class Minimal(Scripted):
        def __init__(self, results):
            self.results = [results]
            self.num_envs = 1
            self.observation_space = spaces.Box(-9, 9, (2,))
            self.action_space = spaces.Box(-9, 9, (1,))

    zeros = np.zeros((1, 2), np.float32)
    wrapper = ALL[name](Minimal((zeros, np.zeros(1), np.zeros(1, bool), [{}])))
    assert wrapper.reset().shape[0] == 1
    assert wrapper.step(np.zeros((1, 1)))[2].tolist() == [False]


@pytest.mark.parametrize("name", ALL)
def test_instance_checks_of_both_libraries(name):
    wrapper = ALL[name](DummyVecEnv(pendulums()))
    assert isinstance(wrapper, getattr(sb3, name))
    assert isinstance(wrapper, sb3.VecEnvWrapper)
    assert sb3.is_vecenv_wrapped(wrapper, getattr(sb3, name))
    assert getattr(sb3, name) not in type(wrapper).mro()
    # A wrapper of Stable-Baselines3 with the functions of Shoal.
    original = {"n_stack": 2} if name == "VecFrameStack" else {}
    theirs = getattr(sb3, name)(DummyVecEnv(pendulums()), **original)
    assert is_vecenv_wrapped(theirs, getattr(shoal.sb3, name))
    assert unwrap_vec_wrapper(theirs, getattr(shoal.sb3, name)) is theirs


class TestVecFrameStack:
    def test_later_steps_do_not_modify_stacks(self):
        vec_env = VecFrameStack(DummyVecEnv(pendulums()), 3)
        vec_env.seed(1)
        stacks = [vec_env.reset()]
        for _ in range(4):
            stacks.append(vec_env.step(np.zeros((2, 1), np.float32))[0])
        copies = [stack.copy() for stack in stacks]
        stacks[-1] += 1
        copies[-1] += 1
        vec_env.reset()
        vec_env.step(np.zeros((2, 1), np.float32))
        assert_identical(stacks, copies)

    def test_modifying_a_stack_does_not_affect_later_ones(self):
        clean = VecFrameStack(DummyVecEnv(pendulums()), 3)
        scribbled = VecFrameStack(DummyVecEnv(pendulums()), 3)
        for vec_env in (clean, scribbled):
            vec_env.seed(1)
        scribbled.reset()[:] = 77
        clean.reset()
        for _ in range(4):
            expected = clean.step(np.zeros((2, 1), np.float32))[0]
            got = scribbled.step(np.zeros((2, 1), np.float32))[0]
            assert_identical(got, expected)
            got[:] = 77

    def test_unsupported_spaces(self):
        for space in (spaces.Discrete(3), spaces.Tuple((spaces.Discrete(3),))):
            with pytest.raises(AssertionError, match=r"only works with gym\.spaces\.Box"):
                VecFrameStack(DummyVecEnv(random_envs(space)), 2)
        with pytest.raises(TypeError, match="Discrete"):
            VecFrameStack(DummyVecEnv(random_envs(KEYED)), 2)
        with pytest.raises(TypeError, match="one dimension at least"):
            VecFrameStack(DummyVecEnv(random_envs(spaces.Box(0, 1, ()))), 2)

    def test_invalid_arguments(self):
        vec_env = DummyVecEnv(pendulums())
        with pytest.raises(AssertionError, match="middle"):
            VecFrameStack(vec_env, 2, channels_order="middle")
        with pytest.raises(TypeError, match="can't be a dict"):
            VecFrameStack(vec_env, 2, channels_order={"a": "first"})
        for count in (0, -1, True):
            with pytest.raises(ValueError, match="n_stack"):
                VecFrameStack(vec_env, count)
        with pytest.raises(TypeError):
            VecFrameStack(vec_env, 1.5)

    def test_vector_without_terminal_observations(self):
        results = np.ones((2, 2), np.float32), np.zeros(2), np.array([True, False]), [{}, {}]
        vec_env = VecFrameStack(Scripted(results), 2)
        vec_env.reset()
        with pytest.warns(UserWarning, match="without terminal_observation"):
            stacks, *_ = vec_env.step([0, 0])
        assert stacks.tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]

    def test_frames_of_all_dtypes(self):
        for dtype in (np.uint8, np.int16, np.float32, np.float64, np.bool_):
            for shape in ((5, 4, 1), (5, 4, 3), (3, 5, 4), (6,), (2, 2, 2, 2)):
                for order in ("first", "last"):
                    for count in (1, 2, 3, 4, 7):
                        space = spaces.Box(0, 1, shape, dtype)
                        own = StackedObservations(2, count, space, order)
                        theirs = sb3.StackedObservations(2, count, space, order)
                        assert own.stacked_observation_space == theirs.stacked_observation_space
                        batch = np.array([space.sample(), space.sample()])
                        assert_identical(own.reset(batch), theirs.reset(batch))
                        for done in ([False, False], [True, False], [False, False]):
                            batch = np.array([space.sample(), space.sample()])
                            infos = [{"terminal_observation": space.sample()}, {}]
                            got = own.update(batch, np.array(done), [dict(i) for i in infos])
                            assert_identical(got, theirs.update(batch, np.array(done), infos))
                        assert_identical(own.stacked_obs, theirs.stacked_obs)


def statistics_of(vec_normalize):
    """Return all statistics of a wrapper of either library."""
    named = {"ret": vec_normalize.ret_rms}
    if hasattr(vec_normalize, "obs_rms"):
        several = vec_normalize.obs_rms
        named |= several if isinstance(several, dict) else {"obs": several}
    return {name: (one.mean, one.var, one.count) for name, one in named.items()}


class TestVecNormalize:
    CASES = {
        "box": (spaces.Box(-9, 9, (5,)), {}),
        "image": (spaces.Box(0, 255, (36, 40, 3), np.uint8), {"clip_obs": 3.0}),
        "dict": (KEYED, {"norm_obs_keys": ["speed"]}),
        "rewards only": (spaces.Discrete(3), {"norm_obs": False, "gamma": 0.5}),
    }

    @pytest.mark.parametrize(("space", "arguments"), CASES.values(), ids=CASES)
    @pytest.mark.parametrize("writer", [sb3, shoal.sb3], ids=["theirs", "ours"])
    @pytest.mark.parametrize("reader", [sb3, shoal.sb3], ids=["to theirs", "to ours"])
    def test_files_are_compatible_with_both_libraries(
        self, space, arguments, writer, reader, tmp_path
    ):
        written = writer.VecNormalize(writer.DummyVecEnv(random_envs(space)), **arguments)
        written.seed(3)
        written.reset()
        for _ in range(10):
            written.step([0, 1])
        file = str(tmp_path / "statistics.pkl")
        written.save(file)
        assert (b"shoal" in (tmp_path / "statistics.pkl").read_bytes()) is False
        read = reader.VecNormalize.load(file, reader.DummyVecEnv(random_envs(space)))
        assert type(read) is reader.VecNormalize
        assert_identical(statistics_of(read), statistics_of(written))
        assert read.observation_space == written.observation_space
        assert read.norm_obs_keys == written.norm_obs_keys
        assert (read.gamma, read.clip_obs) == (written.gamma, written.clip_obs)
        observations = []
        for wrapper in (read, written):
            wrapper.seed(4)
            observations.append([wrapper.reset(), *[wrapper.step([1, 1])[:3] for _ in range(20)]])
        assert_identical(*observations)

    def test_invalid_file(self, tmp_path):
        (tmp_path / "other.pkl").write_bytes(pickle.dumps({"a": 1}))
        with pytest.raises(TypeError, match="expected a VecNormalize"):
            VecNormalize.load(str(tmp_path / "other.pkl"), DummyVecEnv(pendulums()))

    def test_load_with_another_shape(self, tmp_path):
        VecNormalize(DummyVecEnv(pendulums())).save(str(tmp_path / "statistics.pkl"))
        other = DummyVecEnv([partial(gymnasium.make, "MountainCar-v0")])
        with pytest.raises((ValueError, AssertionError), match="shape"):
            VecNormalize.load(str(tmp_path / "statistics.pkl"), other)

    def test_pickles_exclude_the_vector(self):
        wrapper = VecNormalize(DummyVecEnv(pendulums()))
        wrapper.reset()
        copied = pickle.loads(pickle.dumps(wrapper))
        assert type(copied) is VecNormalize
        assert copied.venv is None
        assert_identical(statistics_of(copied), statistics_of(wrapper))
        copied.set_venv(DummyVecEnv(pendulums(3)))
        assert copied.reset().shape == (3, 3)
        with pytest.raises(ValueError, match="already initialized"):
            copied.set_venv(wrapper.venv)

    def test_unsupported_spaces(self):
        with pytest.raises(ValueError, match="not Discrete"):
            VecNormalize(DummyVecEnv(random_envs(spaces.Discrete(3))))
        with pytest.raises(ValueError, match="gear"):
            VecNormalize(DummyVecEnv(random_envs(KEYED)))
        with pytest.raises(ValueError, match="norm_obs_keys"):
            VecNormalize(DummyVecEnv(pendulums()), norm_obs_keys=["speed"])
        with pytest.raises(KeyError, match="sped"):
            VecNormalize(DummyVecEnv(random_envs(KEYED)), norm_obs_keys=["sped"])

    def test_spaces_of_the_wrapped_vector_are_not_modified(self):
        vec_env = DummyVecEnv(random_envs(KEYED))
        wrapper = VecNormalize(vec_env, norm_obs_keys=["image"])
        assert wrapper.observation_space["image"].dtype == np.float32
        assert vec_env.observation_space == KEYED
        assert vec_env.envs[0].observation_space == KEYED

    def test_original_observations_and_rewards(self):
        wrapper = VecNormalize(DummyVecEnv(pendulums()))
        raw = DummyVecEnv(pendulums())
        for vec_env in (wrapper, raw):
            vec_env.seed(1)
        assert_identical((wrapper.reset(), wrapper.get_original_obs())[1], raw.reset())
        for _ in range(5):
            normalized = wrapper.step(np.zeros((2, 1), np.float32))
            expected = raw.step(np.zeros((2, 1), np.float32))
            assert_identical(wrapper.get_original_obs(), expected[0])
            assert_identical(wrapper.get_original_reward(), expected[1])
            np.testing.assert_allclose(
                wrapper.unnormalize_obs(normalized[0]), expected[0], atol=1e-4
            )
            np.testing.assert_allclose(
                wrapper.unnormalize_reward(normalized[1]), expected[1], rtol=1e-4
            )

    def test_without_training_statistics_do_not_change(self):
        wrapper = VecNormalize(DummyVecEnv(pendulums()), training=False)
        before = statistics_of(wrapper)
        wrapper.reset()
        wrapper.step(np.zeros((2, 1), np.float32))
        assert_identical(statistics_of(wrapper), before)

    @pytest.mark.parametrize("trained", [sb3, shoal.sb3], ids=["theirs", "ours"])
    @pytest.mark.parametrize("evaluated", [sb3, shoal.sb3], ids=["to theirs", "to ours"])
    @pytest.mark.parametrize("by", [sb3, shoal.sb3], ids=["by theirs", "by ours"])
    def test_sync_envs_normalization(self, trained, evaluated, by):
        train = trained.VecMonitor(trained.VecNormalize(trained.DummyVecEnv(pendulums())))
        train.reset()
        train.step(np.zeros((2, 1), np.float32))
        check = evaluated.VecMonitor(
            evaluated.VecNormalize(evaluated.DummyVecEnv(pendulums(1)), training=False)
        )
        by.sync_envs_normalization(train, check)
        assert_identical(statistics_of(check.venv), statistics_of(train.venv))
        assert by.unwrap_vec_normalize(check) is check.venv
        check.reset()
        check.step(np.zeros((1, 1), np.float32))
        train.step(np.zeros((2, 1), np.float32))
        assert train.venv.obs_rms.count != check.venv.obs_rms.count

    def test_sync_requires_the_same_wrappers(self):
        train = VecNormalize(DummyVecEnv(pendulums()))
        with pytest.raises(AssertionError, match="VecEnvWrapper"):
            sync_envs_normalization(train, DummyVecEnv(pendulums()))
        with pytest.raises(AssertionError, match="VecNormalize"):
            sync_envs_normalization(train, VecMonitor(DummyVecEnv(pendulums())))
        assert unwrap_vec_normalize(VecMonitor(DummyVecEnv(pendulums()))) is None

    def test_statistics_of_stable_baselines3(self):
        wrapper = VecNormalize(DummyVecEnv(pendulums()))
        wrapper.obs_rms = OriginalStatistics(shape=(3,))
        wrapper.reset()
        assert wrapper.obs_rms.count > 2


def test_failed_save_keeps_the_previous_file(tmp_path):
    vec_env = VecNormalize(DummyVecEnv(pendulums()))
    vec_env.save(str(tmp_path / "statistics.pkl"))
    vec_env.gamma = lambda: 0.9  # cannot be pickled
    with pytest.raises((pickle.PicklingError, AttributeError)):
        vec_env.save(str(tmp_path / "statistics.pkl"))
    again = VecNormalize.load(str(tmp_path / "statistics.pkl"), DummyVecEnv(pendulums()))
    assert again.gamma == 0.99
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_name_missing_keys():
    space = spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Box(-1, 1, (2,)))
    vec_env = DummyVecEnv(random_envs(space))
    with pytest.raises(KeyError, match=r"norm_obs_keys: 'c' is not one of \['a', 'b'\]"):
        VecNormalize(vec_env, norm_obs_keys=["a", "c"])
    with pytest.raises(KeyError, match=r"channels_order has no entry for \['b'\]"):
        VecFrameStack(vec_env, 2, channels_order={"a": "last"})


def test_dones_may_be_a_list():
    stacks = shoal.sb3.StackedObservations(2, 2, spaces.Box(0, 9, (1,)))
    stacks.reset(np.ones((2, 1), np.float32))
    info = {"terminal_observation": np.array([3], np.float32)}
    stacked, infos = stacks.update(np.full((2, 1), 2, np.float32), [True, False], [info, {}])
    assert stacked.tolist() == [[0, 2], [1, 2]]
    assert infos[0]["terminal_observation"].tolist() == [1, 3]


class Halved(VecNormalize):
    def normalize_reward(self, reward):
        return super().normalize_reward(reward) / 2


class HalvedOfTheirs(sb3.VecNormalize):
    pass


@pytest.mark.parametrize("kind", [Halved, HalvedOfTheirs])
def test_subclasses_are_loaded_as_themselves(tmp_path, kind):
    written = kind(DummyVecEnv(pendulums()))
    written.reset()
    written.save(str(tmp_path / "statistics.pkl"))
    read = VecNormalize.load(str(tmp_path / "statistics.pkl"), DummyVecEnv(pendulums()))
    assert type(read) is kind
    np.testing.assert_array_equal(read.obs_rms.mean, written.obs_rms.mean)
    read.reset()


@pytest.mark.parametrize(
    "numbers",
    [
        {"mean": np.zeros(3, np.float32)},
        {"var": np.float64(2)},
        {"var": 2.0, "mean": 1.0},
        {"mean": np.zeros((3, 2))[:, 0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [10.0, np.float32(0.5), np.array([1.0, 0.5, 0.1])], ids=str)
def test_statistics_set_by_the_user(numbers, limit):
    both = [lib.VecNormalize(lib.DummyVecEnv(pendulums())) for lib in (shoal.sb3, sb3)]
    results = []
    for vec_env in both:
        vars(vec_env.obs_rms).update(numbers)
        vec_env.clip_obs, vec_env.training = limit, False
        vec_env.seed(1)
        results.append(vec_env.reset())
    np.testing.assert_array_equal(*results)


class TestVecCheckNan:
    def scripted(self, observations=0.0, reward=0.0, **arguments):
        observations = np.full((2, 2), observations)
        results = observations, np.array([0.0, reward]), np.zeros(2, bool), [{}, {}]
        finite = np.zeros((2, 2)), np.zeros(2), np.zeros(2, bool), [{}, {}]
        vec_env = VecCheckNan(Scripted(finite, results), **arguments)
        vec_env.reset()
        vec_env.step([[1.0], [1.0]])
        return vec_env

    def test_message_names_the_origin(self):
        with pytest.raises(ValueError, match=r"found nan in actions\.[^,]*\n.*RL model"):
            self.scripted(raise_exception=True).step([[np.nan], [0]])
        with pytest.raises(ValueError, match=r"found inf in observations\.[^,]*\n.*environment"):
            self.scripted(np.inf, raise_exception=True).step([[0], [0]])
        with pytest.raises(ValueError, match="found nan in rewards"):
            self.scripted(0.0, np.nan, raise_exception=True).step([[0], [0]])
        self.scripted(np.inf, raise_exception=True, check_inf=False).step([[0], [0]])

    def test_warn_once(self):
        vec_env = self.scripted(np.nan)
        with pytest.warns(UserWarning, match="found nan in observations"):
            vec_env.step([[0], [0]])
        vec_env.step([[np.nan], [0]])
        vec_env = self.scripted(np.nan, warn_once=False)
        for _ in range(2):
            with pytest.warns(UserWarning, match="found nan in actions"):
                vec_env.step_async([[np.nan], [0]])

    def test_message_names_the_parts(self):
        observations = {"a": np.zeros((1, 2)), "b": (np.array([np.inf]), {"c": np.array([np.nan])})}
        results = observations, np.zeros(1), np.zeros(1, bool), [{}]
        vec_env = VecCheckNan(Scripted(results), raise_exception=True)
        with pytest.raises(ValueError, match=r"inf in observations\.b\.0, found nan in .*b\.1\.c"):
            vec_env.reset()
        assert vec_env.check_array_value("x", np.array([np.nan])) == [("x", "nan")]

    def test_dict_actions(self):
        dicts = spaces.Dict(a=spaces.Discrete(2))
        factories = [partial(RandomEnv, spaces.Discrete(2), dicts)]
        with pytest.raises(NotImplementedError, match="dict action"):
            VecCheckNan(DummyVecEnv(factories))


class TestVecMonitor:
    def test_files(self, tmp_path):
        factories = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=12)] * 3
        file = str(tmp_path / "run")
        with VecMonitorFile(factories, file) as vec_env:
            episodes = []
            vec_env.seed(1)
            vec_env.reset()
            for _ in range(40):
                *_, infos = vec_env.step(np.array([0, 1, 1]))
                episodes += [info["episode"] for info in infos if "episode" in info]
        assert vec_env.episode_count == len(episodes)
        written = (tmp_path / "run.monitor.csv").read_text().splitlines()
        assert written[1] == "r,l,t,TimeLimit.truncated"
        assert len(written) == 2 + len(episodes)
        assert written[2].split(",")[:2] == [str(episodes[0]["r"]), str(episodes[0]["l"])]

    def test_missing_keyword(self):
        vec_env = VecMonitor(
            DummyVecEnv([partial(gymnasium.make, "CartPole-v1", max_episode_steps=1)]),
            info_keywords=("height",),
        )
        vec_env.reset()
        with pytest.raises(KeyError, match="height"):
            vec_env.step([0])

    def test_wrapping_a_monitor_warns(self):
        below = shoal.sb3.make_vec_env("CartPole-v1")
        with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
            VecMonitor(below)


class VecMonitorFile(VecMonitor):
    def __init__(self, factories, file):
        super().__init__(DummyVecEnv(factories), file, info_keywords=("TimeLimit.truncated",))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class TestVecVideoRecorder:
    @pytest.mark.parametrize("count", [1, 3])
    def test_files(self, tmp_path, count):
        factories = [partial(gymnasium.make, "CartPole-v1", render_mode="rgb_array")] * count
        folder = tmp_path / "videos" / "deep"
        vec_env = VecVideoRecorder(
            DummyVecEnv(factories), str(folder), lambda step: step in (0, 6), video_length=4
        )
        vec_env.reset()
        for _ in range(8):
            vec_env.step([0] * count)
        assert vec_env.recording
        assert len(vec_env.recorded_frames) == 3
        vec_env.close()
        names = sorted(file.name for file in folder.iterdir())
        assert names == ["rl-video-step-0-to-step-4.mp4", "rl-video-step-6-to-step-10.mp4"]
        height, width = (400, 600) if count == 1 else (800, 1200)
        assert imageio.imread(folder / names[0]).shape == (5, height, width, 3)
        assert imageio.imread(folder / names[1]).shape == (3, height, width, 3)
        assert imageio.immeta(folder / names[0])["fps"] == 50.0
        assert vec_env.video_path == str(folder / names[1])

    def test_other_render_modes(self, tmp_path):
        with pytest.raises(AssertionError, match="rgb_array"):
            VecVideoRecorder(DummyVecEnv(pendulums()), str(tmp_path), lambda step: True)

    def test_around_other_wrappers(self, tmp_path):
        factories = pendulums(render_mode="rgb_array")
        vec_env = VecVideoRecorder(
            VecNormalize(DummyVecEnv(factories)), str(tmp_path), lambda step: step == 0, 2
        )
        vec_env.reset()
        for _ in range(3):
            vec_env.step(np.zeros((2, 1), np.float32))
        vec_env.close()
        assert [file.name for file in tmp_path.iterdir()] == ["rl-video-step-0-to-step-2.mp4"]


def test_extract_dict_obs():
    vec_env = DummyVecEnv(random_envs(KEYED))
    with pytest.raises(KeyError, match="wheel"):
        VecExtractDictObs(vec_env, "wheel")
    with pytest.raises(AssertionError, match="Dict"):
        VecExtractDictObs(DummyVecEnv(pendulums()), "a")
    assert VecExtractDictObs(vec_env, "speed").reset().shape == (2, 2)


def test_transpose_of_unsupported_spaces():
    with pytest.raises(AssertionError, match="must be an image"):
        VecTransposeImage(DummyVecEnv(pendulums()))
    first = spaces.Box(0, 255, (3, 36, 40), np.uint8)
    with pytest.raises(AssertionError, match="channel last"):
        VecTransposeImage(DummyVecEnv(random_envs(first)))


def test_monitor_files(tmp_path):
    vec_env = shoal.sb3.make_vec_env(
        "CartPole-v1", 2, monitor_dir=str(tmp_path), env_kwargs={"max_episode_steps": 3}
    )
    vec_env.reset()
    for _ in range(7):
        vec_env.step([0, 1])
    vec_env.close()
    for slot in range(2):
        header, names, *episodes = (tmp_path / f"{slot}.monitor.csv").read_text().splitlines()
        assert "CartPole-v1" in header
        assert names == "r,l,t"
        assert [row.split(",")[:2] for row in episodes] == [["3.0", "3"]] * 2
