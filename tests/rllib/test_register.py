"""`register`: supported sources, options and errors."""

from functools import partial
from threading import Lock

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

pytest.importorskip("ray.rllib")

import ray
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import ENV_CREATOR, _global_registry

import shoal
import shoal.rllib
from shoal.errors import FactoryPicklingError
from shoal.remote.bam import MockEnv, make_bam_vec_env
from shoal.testing import ProbeEnv
from shoal.vector.wrappers import RescaleObservation
from tests.remote.serving import served
from tests.rllib.env_runners import NATIVE, NoModule, make_config, runner


def create_vector(source, num_envs=2, env_config=None, **options):
    """Create the vector of an env runner; the caller closes it."""
    creator = _global_registry.get(ENV_CREATOR, shoal.rllib.register(source, **options))
    return creator({**(env_config or {}), "num_envs": num_envs})


SOURCES = {
    "id": "CartPole-v1",
    "spec": gymnasium.spec("Pendulum-v1"),
    "class": ProbeEnv,
    "function that creates an environment": lambda: ProbeEnv(),
    "list of functions": [ProbeEnv, lambda: ProbeEnv()],
    "single-player hockey": "shoal/HockeyOne-v0",
    "function that creates a vector": lambda num_envs: shoal.make("CartPole-v1", num_envs),
    "wrapped vector": lambda num_envs: RescaleObservation(
        shoal.make("MountainCar-v0", num_envs), np.float32(0), np.float32(1)
    ),
    "Gymnasium vector": lambda num_envs: gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * num_envs
    ),
    "BAM": partial(make_bam_vec_env, MockEnv),
    "RLlib env creator": lambda env_config: make_bam_vec_env(MockEnv, num_envs=2, **env_config),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_supported_sources(source):
    with runner(shoal.rllib.register(source), num_envs=2, kind=NoModule, **NATIVE) as env_runner:
        episodes = env_runner.sample(num_timesteps=20, random_actions=True)
    assert sum(map(len, episodes)) >= 20


def test_kernel_as_source():
    pytest.importorskip("numba")

    @shoal.kernels.numba_kernel(
        observation_space=gymnasium.spaces.Box(-1, 1, (1,)),
        action_space=gymnasium.spaces.Discrete(2),
        state=[("place", "f8")],
        max_episode_steps=4,
    )
    class Slide:
        @staticmethod
        def reset(state, random, parameters, options, observation):
            state.place = 0.0
            observation[0] = 0.0

        @staticmethod
        def step(state, random, parameters, action, observation):
            state.place += 0.125
            observation[0] = state.place
            return 1.0, False, False

    with runner(shoal.rllib.register(Slide), num_envs=2, **NATIVE) as env_runner:
        first, *_ = env_runner.sample(num_timesteps=12)
    assert first.is_truncated
    assert first.get_observations().ravel().tolist() == [0.0, 0.125, 0.25, 0.375, 0.5]


def test_remote_vector_in_a_remote_env_runner():
    def cartpoles(num_envs):
        return shoal.make("CartPole-v1", num_envs)

    with served(cartpoles, "tcp://127.0.0.1:0") as url:
        remote = ray.remote(num_cpus=1)(SingleAgentEnvRunner)
        config = make_config(shoal.rllib.register(url), num_env_runners=1, **NATIVE)
        actor = remote.remote(config=config, worker_index=1)
        actual = ray.get(actor.sample.remote(num_timesteps=40))
        ray.get(actor.stop.remote())
        ray.kill(actor)
    with runner(shoal.rllib.register("CartPole-v1"), worker=1, **NATIVE) as local:
        expected = local.sample(num_timesteps=40)
    for one, other in zip(actual, expected, strict=True):
        assert one.get_observations().tobytes() == other.get_observations().tobytes()


def test_env_config_overrides_options():
    with create_vector("Pendulum-v1", env_config={"g": 1.62}, g=3.72) as envs:
        assert envs.get_attr("g") == (1.62, 1.62)
    with create_vector(
        lambda num_envs, g: shoal.make("Pendulum-v1", num_envs, g=g), g=3.72
    ) as envs:
        assert envs.get_attr("g") == (3.72, 3.72)


def test_default_names_are_readable_and_unique():
    register = shoal.rllib.register
    assert register("CartPole-v1") == "shoal-CartPole-v1"
    assert register("shoal/HockeyOne-v0") == "shoal-shoal-HockeyOne-v0"
    assert register("CartPole-v1", name="mine") == "mine"
    names = {register("Pendulum-v1", g=g) for g in (9.81, 1.62)}
    assert len(names) == 2
    assert all(name.startswith("shoal-Pendulum-v1-") for name in names)
    assert register(lambda: ProbeEnv()).startswith("shoal-lambda-")


def check_rejected(error, message, source="CartPole-v1", **options):
    with pytest.raises(error, match=message):
        shoal.rllib.register(source, **options)


def test_unsupported_options_are_rejected_by_register():
    for mode in (AutoresetMode.SAME_STEP, "Disabled"):
        check_rejected(ValueError, "by the step after an episode's last", autoreset_mode=mode)
    check_rejected(ValueError, "must be copies", copy=False)
    check_rejected(
        ValueError, "info_format must be 'dict' for RLlib, got 'list'", info_format="list"
    )
    check_rejected(TypeError, "num_envs_per_env_runner", num_envs=3)
    check_rejected(gymnasium.error.NameNotFound, "CartPool", "CartPool-v1")
    check_rejected(FactoryPicklingError, "cannot be sent to env runners", partial(int, Lock()))


def test_unsupported_vector_is_closed_and_rejected():
    closed = []

    class RecordsClose(gymnasium.vector.SyncVectorEnv):
        def __init__(self, num_envs, **options):
            super().__init__([lambda: gymnasium.make("CartPole-v1")] * num_envs, **options)

        def close(self, **arguments):
            closed.append(self)
            super().close(**arguments)

    for message, number, options in (
        ("has 3 slots, but num_envs_per_env_runner is 2", 3, {}),
        ("by the step after", 2, {"autoreset_mode": AutoresetMode.SAME_STEP}),
        ("must be copies", 2, {"copy": False}),
    ):
        creator = shoal.rllib._register.VectorCreator(
            lambda num_envs, number=number, options=options: RecordsClose(number, **options), {}
        )
        with pytest.raises(ValueError, match=message):
            creator({"num_envs": 2})
        assert len(closed) == 1
        closed.clear()
    with pytest.raises(ValueError, match="must be copies"):
        create_vector(lambda num_envs: shoal.make("CartPole-v1", num_envs, copy=False))


def test_functions_that_do_not_return_a_vector_are_rejected():
    with pytest.raises(TypeError, match="must return a vector"):
        create_vector(lambda num_envs: ProbeEnv())
    with pytest.raises(TypeError, match="must have no required arguments"):
        create_vector(lambda env_config: 3)


@pytest.mark.parametrize("mode", ["sync", None])
def test_missing_vectorize_mode_raises(mode):
    settings = {} if mode is None else {"gym_env_vectorize_mode": mode}
    config = make_config(shoal.rllib.register("CartPole-v1"), **settings)
    with pytest.raises(ValueError, match="gym_env_vectorize_mode='vector_entry_point'"):
        SingleAgentEnvRunner(config=config, worker_index=0)


def test_failed_vector_is_created_again(tmp_path):
    mark = tmp_path / "has failed"

    class FailsOnce(ProbeEnv):
        def step(self, action):
            if not mark.exists():
                mark.touch()
                raise RuntimeError("once")
            return super().step(action)

    name = shoal.rllib.register(lambda: FailsOnce(), backend="inline")
    config = make_config(name, 2, **NATIVE)
    config.fault_tolerance(restart_failed_sub_environments=True)
    env_runner = NoModule(config=config, worker_index=0)
    before = env_runner.env.unwrapped
    episodes = env_runner.sample(num_timesteps=10, random_actions=True)
    assert sum(map(len, episodes)) >= 10
    assert mark.exists()
    assert before.closed
    env_runner.stop()
    assert env_runner.env.unwrapped.closed
