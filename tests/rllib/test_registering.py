"""What can be registered with RLlib, and what is refused."""

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
from tests.rllib.collecting import NATIVE, NoModule, configured, runner


def made(what, num_envs=2, env_config=None, **options):
    """The vector that an env runner gets; the caller closes it."""
    creator = _global_registry.get(ENV_CREATOR, shoal.rllib.register(what, **options))
    return creator({**(env_config or {}), "num_envs": num_envs})


SOURCES = {
    "id": "CartPole-v1",
    "spec": gymnasium.spec("Pendulum-v1"),
    "class": ProbeEnv,
    "function for one environment": lambda: ProbeEnv(),
    "list of functions": [ProbeEnv, lambda: ProbeEnv()],
    "hockey for one": "shoal/HockeyOne-v0",
    "function for a vector": lambda num_envs: shoal.make("CartPole-v1", num_envs),
    "vector in a wrapper": lambda num_envs: RescaleObservation(
        shoal.make("MountainCar-v0", num_envs), np.float32(0), np.float32(1)
    ),
    "Gymnasium's vector": lambda num_envs: gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * num_envs
    ),
    "BAM": partial(make_bam_vec_env, MockEnv),
    "function as RLlib's": lambda env_config: make_bam_vec_env(MockEnv, num_envs=2, **env_config),
}


@pytest.mark.parametrize("what", SOURCES.values(), ids=SOURCES)
def test_whatever_is_a_vector_is_made_for_rllib(what):
    with runner(shoal.rllib.register(what), num_envs=2, kind=NoModule, **NATIVE) as collecting:
        episodes = collecting.sample(num_timesteps=20, random_actions=True)
    assert sum(map(len, episodes)) >= 20


def test_a_kernel_is_made_for_rllib():
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

    with runner(shoal.rllib.register(Slide), num_envs=2, **NATIVE) as collecting:
        first, *_ = collecting.sample(num_timesteps=12)
    assert first.is_truncated
    assert first.get_observations().ravel().tolist() == [0.0, 0.125, 0.25, 0.375, 0.5]


def test_a_remote_vector_is_stepped_by_an_env_runner_in_another_process():
    def cartpoles(num_envs):
        return shoal.make("CartPole-v1", num_envs)

    with served(cartpoles, "tcp://127.0.0.1:0") as url:
        remote = ray.remote(num_cpus=1)(SingleAgentEnvRunner)
        config = configured(shoal.rllib.register(url), num_env_runners=1, **NATIVE)
        actor = remote.remote(config=config, worker_index=1)
        got = ray.get(actor.sample.remote(num_timesteps=40))
        ray.get(actor.stop.remote())
        ray.kill(actor)
    with runner(shoal.rllib.register("CartPole-v1"), worker=1, **NATIVE) as local:
        expected = local.sample(num_timesteps=40)
    for one, other in zip(got, expected, strict=True):
        assert one.get_observations().tobytes() == other.get_observations().tobytes()


def test_env_config_counts_more_than_options():
    with made("Pendulum-v1", env_config={"g": 1.62}, g=3.72) as envs:
        assert envs.get_attr("g") == (1.62, 1.62)
    with made(lambda num_envs, g: shoal.make("Pendulum-v1", num_envs, g=g), g=3.72) as envs:
        assert envs.get_attr("g") == (3.72, 3.72)


def test_names_tell_what_is_registered_and_are_not_shared():
    register = shoal.rllib.register
    assert register("CartPole-v1") == "shoal-CartPole-v1"
    assert register("shoal/HockeyOne-v0") == "shoal-shoal-HockeyOne-v0"
    assert register("CartPole-v1", name="mine") == "mine"
    names = {register("Pendulum-v1", g=g) for g in (9.81, 1.62)}
    assert len(names) == 2
    assert all(name.startswith("shoal-Pendulum-v1-") for name in names)
    assert register(lambda: ProbeEnv()).startswith("shoal-lambda-")


def refused(error, message, what="CartPole-v1", **options):
    with pytest.raises(error, match=message):
        shoal.rllib.register(what, **options)


def test_options_that_rllib_cannot_do_with_are_refused_before_anything_is_made():
    for mode in (AutoresetMode.SAME_STEP, "Disabled"):
        refused(ValueError, "by the step after an episode's last", autoreset_mode=mode)
    refused(ValueError, "must be copies", copy=False)
    refused(ValueError, "infos as 'dict' only, got 'list'", info_format="list")
    refused(TypeError, "num_envs_per_env_runner", num_envs=3)
    refused(gymnasium.error.NameNotFound, "CartPool", "CartPool-v1")
    refused(FactoryPicklingError, "cannot be sent to env runners", partial(int, Lock()))


def test_a_vector_that_rllib_cannot_do_with_is_closed_and_refused():
    closed = []

    class Noted(gymnasium.vector.SyncVectorEnv):
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
            lambda num_envs, number=number, options=options: Noted(number, **options), {}
        )
        with pytest.raises(ValueError, match=message):
            creator({"num_envs": 2})
        assert len(closed) == 1
        closed.clear()
    with pytest.raises(ValueError, match="must be copies"):
        made(lambda num_envs: shoal.make("CartPole-v1", num_envs, copy=False))


def test_what_is_no_vector_is_refused():
    with pytest.raises(TypeError, match="expected a vector"):
        made(lambda num_envs: ProbeEnv())
    with pytest.raises(TypeError, match="no argument that it must be given"):
        made(lambda env_config: 3)


@pytest.mark.parametrize("mode", ["sync", None])
def test_a_config_without_the_mode_is_told_which_one(mode):
    settings = {} if mode is None else {"gym_env_vectorize_mode": mode}
    config = configured(shoal.rllib.register("CartPole-v1"), **settings)
    with pytest.raises(ValueError, match="gym_env_vectorize_mode='vector_entry_point'"):
        SingleAgentEnvRunner(config=config, worker_index=0)


def test_a_vector_that_has_failed_is_made_again_if_the_config_says_so(tmp_path):
    mark = tmp_path / "has failed"

    class FailsOnce(ProbeEnv):
        def step(self, action):
            if not mark.exists():
                mark.touch()
                raise RuntimeError("once")
            return super().step(action)

    name = shoal.rllib.register(lambda: FailsOnce(), backend="inline")
    config = configured(name, 2, **NATIVE)
    config.fault_tolerance(restart_failed_sub_environments=True)
    collecting = NoModule(config=config, worker_index=0)
    before = collecting.env.unwrapped
    episodes = collecting.sample(num_timesteps=10, random_actions=True)
    assert sum(map(len, episodes)) >= 10
    assert mark.exists()
    assert before.closed
    collecting.stop()
    assert collecting.env.unwrapped.closed
