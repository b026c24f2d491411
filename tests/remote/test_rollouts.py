"""Remote rollouts equal local rollouts bit for bit."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.pools import InlinePool
from shoal.remote import Hosted, Unsent
from shoal.sb3 import as_vec_env
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector import SyncVectorEnv, VectorEnv
from tests.random_environments import RandomEnv, WordSpace
from tests.remote.serving import connected, named, place, served
from tests.rollouts import assert_rollouts_are_equal
from tests.strategies import SPACES, travels

MODES = list(AutoresetMode)


@pytest.fixture(scope="module")
def socket_place(tmp_path_factory):
    return f"unix://{tmp_path_factory.mktemp('sockets')}/socket"


def random_envs(observation, action, num_envs):
    return [partial(RandomEnv, observation, action)] * num_envs


CASES = given(
    observation=SPACES.filter(travels),
    action=SPACES.filter(travels),
    mode=st.sampled_from(AutoresetMode),
    num_envs=st.integers(1, 4),
    seed=st.integers(0, 2**31),
    over=st.sampled_from(["inproc", "unix", "inproc without memory"]),
    on_lost=st.sampled_from(["raise", "resume"]),
)
CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


def play_random(observation, action, mode, num_envs, seed, over, on_lost, where, steps):
    factories = random_envs(observation, action, num_envs)
    made = []

    def factory():
        made.append(InlinePool(factories, autoreset_mode=mode))
        return made[-1]

    local = SyncVectorEnv(factories, autoreset_mode=mode)
    url = where if over == "unix" else place()
    options = {"shared_memory": over != "inproc without memory", "on_lost": on_lost}
    with served(factory, url) as it, shoal.connect(it, timeout=20.0, **options) as envs:
        assert_rollouts_are_equal(envs, local, steps, seed)
        for env, reference in zip(made[0].envs, local.envs, strict=True):
            assert_identical(env.unwrapped.received, reference.unwrapped.received)
    local.close()


@settings(max_examples=25, deadline=None, suppress_health_check=CHECKS)
@CASES
def test_random_environments(
    observation, action, mode, num_envs, seed, over, on_lost, socket_place
):
    play_random(observation, action, mode, num_envs, seed, over, on_lost, socket_place, 12)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(max_examples=1500, deadline=None, suppress_health_check=CHECKS)
@CASES
def test_many_random_environments(
    observation, action, mode, num_envs, seed, over, on_lost, socket_place
):
    play_random(observation, action, mode, num_envs, seed, over, on_lost, socket_place, 25)


def test_unsupported_space_is_rejected():
    words, box = WordSpace(), spaces.Box(0, 1)
    for observation, action in ((words, box), (box, words)):
        with (
            served(lambda o=observation, a=action: InlinePool(random_envs(o, a, 1))) as it,
            pytest.raises(shoal.errors.RefusedError, match="WordSpace cannot be described"),
        ):
            shoal.connect(it)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", ["CartPole-v1", "MountainCarContinuous-v0", "Blackjack-v1"])
def test_real_environments(env_id, mode):
    factories = [partial(gymnasium.make, env_id, max_episode_steps=30)] * 3
    envs = connected(lambda: InlinePool(factories, autoreset_mode=mode), timeout=20.0)
    local = SyncVectorEnv(factories, autoreset_mode=mode)
    assert_rollouts_are_equal(envs, local, 100, seed=7)
    envs.close()
    local.close()


@pytest.mark.parametrize("mode", MODES)
def test_kernels(mode):
    made = partial(shoal.make, "CartPole-v1", 5, backend="kernel", autoreset_mode=mode)
    envs, local = connected(made, timeout=20.0), made()
    assert_rollouts_are_equal(envs, local, 300, seed=7)
    envs.close()
    local.close()


@pytest.mark.parametrize("backend", ["kernel", "inline"])
@pytest.mark.parametrize(
    ("mode", "info_format"),
    [*((mode, form) for mode in MODES for form in ("dict", "list")), (MODES[1], "pre-1.0")],
)
def test_statistics(backend, mode, info_format):
    made = partial(
        shoal.make, "CartPole-v1", 4, backend=backend, autoreset_mode=mode, statistics=True
    )
    envs = connected(made, timeout=20.0, info_format=info_format)
    local = made(info_format=info_format)
    assert_identical(envs.reset(seed=3), local.reset(seed=3))
    ended = 0
    local.action_space.seed(1)
    for _ in range(120):
        actions = local.action_space.sample()
        got, expected = envs.step(actions), local.step(actions)
        ended += without_times(got[4], info_format) + without_times(expected[4], info_format)
        assert_identical(got, expected)
        mask = expected[2] | expected[3]
        if mode is AutoresetMode.DISABLED and mask.any():
            options = {"reset_mask": mask}
            assert_identical(envs.reset(options=options), local.reset(options=options))
    assert ended >= 8
    envs.close()
    local.close()


def without_times(infos, info_format):
    """Remove the duration of episodes, which varies."""
    if info_format == "list":
        episodes = [info["episode"] for info in infos if "episode" in info]
        episodes += [
            info["final_info"]["episode"]
            for info in infos
            if "episode" in info.get("final_info", ())
        ]
    elif info_format == "pre-1.0":
        episodes = [
            info["episode"]
            for info in infos.get("final_info", ())
            if info is not None and "episode" in info
        ]
        episodes += [infos["episode"]] if "episode" in infos else []
    else:
        episodes = [infos["episode"]] if "episode" in infos else []
        episodes += (
            [infos["final_info"]["episode"]] if "episode" in infos.get("final_info", ()) else []
        )
    for episode in episodes:
        episode["t"] = np.zeros_like(episode["t"])
    return len(episodes)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_hosted_gymnasium_vector(mode, exclusive):
    factories = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=20)] * 3
    made = partial(gymnasium.vector.SyncVectorEnv, factories, autoreset_mode=mode)
    envs = connected(Hosted(lambda: made(), exclusive=exclusive), timeout=20.0)
    local = made()
    assert_rollouts_are_equal(envs, local, 100, seed=5)
    envs.close()
    local.close()


def test_hosted_wrapped_gymnasium_vector():
    def made():
        vector = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="sync")
        return gymnasium.wrappers.vector.ClipReward(vector, max_reward=0.5)

    envs, local = connected(made, timeout=20.0), made()
    assert_identical(envs.reset(seed=2), local.reset(seed=2))
    local.action_space.seed(2)
    for _ in range(60):
        actions = local.action_space.sample()
        assert_identical(envs.step(actions), local.step(actions))
    envs.close()
    local.close()


@pytest.mark.parametrize(
    "mode", [AutoresetMode.NEXT_STEP, pytest.param(AutoresetMode.SAME_STEP, marks=pytest.mark.slow)]
)
def test_worker_processes(mode):
    factories = [partial(ProbeEnv, label) for label in range(3)]
    made = partial(shoal.make, factories, backend="process", workers=2, autoreset_mode=mode)
    envs = connected(made, timeout=60.0, on_lost="resume")
    local = SyncVectorEnv(factories, autoreset_mode=mode)
    assert_rollouts_are_equal(envs, local, 80, seed=9)
    assert envs.call("label") == (0, 1, 2)
    envs.close()
    local.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "observation",
    [
        ProbeEnv.observation_space,
        pytest.param(
            spaces.Tuple((spaces.Text(4), spaces.Sequence(spaces.Box(0, 1)))),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_several_servers_equal_one_vector(observation, mode):
    action = ProbeEnv.action_space
    sizes = [2, 1, 3]

    def factory(num_envs):
        return InlinePool(random_envs(observation, action, num_envs), autoreset_mode=mode)

    servers = [shoal.serve({"it": factory}, place()) for _ in sizes]
    envs = shoal.connect(
        [named(server.url, "it") for server in servers], num_envs=sizes, timeout=20.0
    )
    local = VectorEnv(InlinePool(random_envs(observation, action, 6), autoreset_mode=mode))
    assert_rollouts_are_equal(envs, local, 30, seed=13)
    envs.close()
    local.close()
    for server in servers:
        server.close()


@pytest.mark.parametrize("seed", [None, 5, [4, None, 9]])
def test_seeds_and_options_are_preserved(seed):
    class RecordingEnv(ProbeEnv):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self._observe(0.0), {"seed": seed, "options": repr(options)}

    options = {"a": 1, "b": (1, 2.5), "c": np.arange(3, dtype=np.int16), 4: None}
    envs = connected(lambda: InlinePool([RecordingEnv] * 3), timeout=5.0)
    local = VectorEnv(InlinePool([RecordingEnv] * 3))
    got, expected = envs.reset(seed=seed, options=options), local.reset(seed=seed, options=options)
    if seed is not None and None not in np.atleast_1d(np.array(seed, object)):
        assert_identical(got, expected)
    assert_identical(got[1], expected[1])
    envs.close()
    local.close()


def test_batches_belong_to_the_caller():
    envs = connected(lambda: InlinePool([ProbeEnv] * 2), timeout=5.0)
    first, _ = envs.reset(seed=1)
    kept = {key: np.array(value) for key, value in first.items() if key == "vector"}
    for _ in range(5):
        envs.step(envs.action_space.sample())
    assert_identical(first["vector"], kept["vector"])
    assert first["vector"].flags.writeable
    envs.close()


def test_render_and_attributes():
    class Painter(ProbeEnv):
        metadata = {"render_modes": ["rgb_array"], "render_fps": 30}

        def __init__(self, label=0):
            super().__init__(label)
            self.render_mode = "rgb_array"

        def render(self):
            return np.full((4, 5, 3), self.label, np.uint8)

    factories = [partial(Painter, label) for label in range(3)]
    envs = connected(lambda: InlinePool(factories), timeout=5.0)
    local = VectorEnv(InlinePool(factories))
    for vector in (envs, local):
        vector.reset(seed=1)
    assert envs.render_mode == "rgb_array"
    assert envs.metadata["render_fps"] == 30
    assert_identical(envs.render(), local.render())
    for vector in (envs, local):
        vector.set_attr("label", [7, 8, 9])
        vector.set_attr("extra", {"nested": (1, np.float32(2))})
    for name in ("label", "extra", "total_steps", "render_mode"):
        assert_identical(envs.get_attr(name), local.get_attr(name))
    assert_identical(envs.call("render"), local.call("render"))
    assert_identical(envs.call("has_wrapper_attr", "label"), (True,) * 3)
    with pytest.raises(AttributeError, match="no_such_thing"):
        envs.get_attr("no_such_thing")
    assert all(isinstance(each, Unsent) for each in envs.get_attr("np_random"))
    assert envs.get_attr("np_random_seed") == local.get_attr("np_random_seed")
    envs.close()
    local.close()


def test_values_that_cannot_be_sent_raise():
    """An environment must never receive an Unsent placeholder."""
    envs = connected(lambda: InlinePool([ProbeEnv]), timeout=5.0)
    envs.reset(seed=1)
    for use in (
        lambda: envs.set_attr("label", object()),
        lambda: envs.call("has_wrapper_attr", {1, 2}),
        lambda: envs.reset(options={"deep": [object()]}),
    ):
        with pytest.raises(TypeError, match="plain value"):
            use()
    assert envs.pool.in_flight == 0
    assert envs.get_attr("label") == (0,)
    envs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_legacy_reset_mode_is_rejected(mode):
    with (
        served(lambda: InlinePool([ProbeEnv], autoreset_mode=mode)) as it,
        pytest.raises(ValueError, match=r"pre-1\.0"),
    ):
        shoal.connect(it, info_format="pre-1.0")


def test_factory_arguments():
    def factory(num_envs, label=0, autoreset_mode="NextStep"):
        return InlinePool(
            [partial(ProbeEnv, label)] * num_envs, autoreset_mode=AutoresetMode(autoreset_mode)
        )

    with served(factory) as it:
        with shoal.connect(it, 3, label=5, autoreset_mode="SameStep") as envs:
            envs.reset(seed=0)
            assert envs.call("label") == (5, 5, 5)
            assert envs.autoreset_mode is AutoresetMode.SAME_STEP
        for options, match in (
            ({"num_envs": 1, "colour": "red"}, "no parameter colour"),
            ({}, "num_envs"),
            ({"num_envs": 0}, "0 slots were requested"),
            ({"num_envs": -3}, "-3 slots were requested"),
        ):
            with pytest.raises(shoal.errors.RefusedError, match=match):
                shoal.connect(it, **options)
    with (
        served(lambda: InlinePool([ProbeEnv] * 2)) as it,
        pytest.raises(
            shoal.errors.RefusedError, match="3 slots were requested, but the factory made 2"
        ),
    ):
        shoal.connect(it, 3)


def test_stable_baselines3_frontend():
    factories = [partial(gymnasium.make, "CartPole-v1", max_episode_steps=15)] * 3
    made = lambda: InlinePool(factories, autoreset_mode=AutoresetMode.SAME_STEP)  # noqa: E731
    remote = as_vec_env(connected(made, timeout=20.0))
    local = as_vec_env(VectorEnv(made()))
    for vec_env in (remote, local):
        vec_env.seed(4)
    assert_identical(remote.reset(), local.reset())
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(0, 2, 3)
        got, expected = remote.step(actions), local.step(actions)
        for infos in (got[3], expected[3]):
            for info in infos:
                info.pop("episode", None)
        assert_identical(got, expected)
    assert remote.get_attr("render_mode") == local.get_attr("render_mode")
    assert remote.env_method("get_wrapper_attr", "spec") is not None
    remote.close()
    local.close()


def test_observations_whose_bounds_differ():
    box = spaces.Box
    factories = [
        partial(RandomEnv, box(0, high, (3,), np.float32), spaces.Discrete(3))
        for high in (1.0, 2.0, 3.0)
    ]
    envs = connected(lambda: InlinePool(factories, observation_mode="different"), timeout=5.0)
    local = SyncVectorEnv(factories, observation_mode="different")
    assert envs.observation_space == local.observation_space
    assert_rollouts_are_equal(envs, local, 30, seed=1)
    envs.close()
    local.close()
