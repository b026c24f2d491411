"""Episodes collected from Shoal's vectors equal those collected from RLlib's own."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("ray.rllib")

from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

import shoal
import shoal.rllib
from shoal.testing import assert_identical
from tests.rllib.env_runners import NATIVE, collect, runner

EITHER_RUNNER = pytest.mark.parametrize("kind", [SingleAgentEnvRunner, shoal.rllib.EnvRunner])


class Levers(gymnasium.Env):
    """Environment with nested actions that terminates or truncates randomly."""

    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Dict(
        force=spaces.Box(-2.0, 5.0, (3,)),
        gear=spaces.Discrete(3),
        keys=spaces.MultiDiscrete([2, 4]),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observation(), {"reset": True}

    def step(self, action):
        assert action in self.action_space
        ends = self.np_random.random() < 0.2
        reward = float(action["force"].sum()) + int(action["gear"])
        info = {"keys": action["keys"].copy()} if ends else {}
        return self._observation(), reward, ends, not ends and self.np_random.random() < 0.2, info

    def _observation(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)


gymnasium.register("Levers-v0", Levers)


@EITHER_RUNNER
@pytest.mark.parametrize(
    ("env", "samples"),
    [
        ("CartPole-v1", (100, 60, 60)),
        ("Pendulum-v1", (450, 300)),
        ("Levers-v0", (60, 60)),
        ("shoal/HockeyOne-v0", (900,)),
    ],
)
def test_episodes_equal_those_of_rllibs_vectors(kind, env, samples):
    expected = collect(env, samples=samples)
    actual = collect(shoal.rllib.register(env), samples=samples, kind=kind, **NATIVE)
    assert_identical(actual, expected)
    assert {any(episode["ended"]) for episode in expected} == {True, False}  # some are unfinished


@EITHER_RUNNER
@pytest.mark.parametrize("clip", [False, True])
def test_clip_actions_setting(kind, clip):
    environment = {"normalize_actions": False, "clip_actions": clip}
    env = "Levers-v0" if clip else "CartPole-v1"  # CartPole has no actions to clip
    expected = collect(env, environment=environment)
    name = shoal.rllib.register(env)
    actual = collect(name, environment=environment, kind=kind, **NATIVE)
    assert_identical(actual, expected)


@EITHER_RUNNER
def test_random_actions(kind):
    expected = collect("CartPole-v1", random_actions=True)
    actual = collect(shoal.rllib.register("CartPole-v1"), random_actions=True, kind=kind, **NATIVE)
    assert_identical(actual, expected)


@EITHER_RUNNER
def test_infos_of_kernels(kind):
    def flat(env, spaces, device):
        return FlattenObservations()

    settings = {"env_to_module_connector": flat, "random_actions": True, "samples": (80,)}
    expected = collect("Taxi-v3", **settings)
    actual = collect(shoal.rllib.register("Taxi-v3"), kind=kind, **settings, **NATIVE)
    assert_identical(actual, expected)
    assert all("action_mask" in info for episode in actual for info in episode["infos"])


def test_statistics_at_the_end_of_episodes():
    name = shoal.rllib.register("CartPole-v1", statistics=True)
    for episode in collect(name, samples=(200,), **NATIVE):
        last = episode["infos"][-1]
        assert ("episode" in last) == any(episode["ended"])
        if any(episode["ended"]):
            assert last["episode"]["l"] == episode["steps"][1]


def test_module_with_state():
    settings = {"model_config": {"use_lstm": True, "lstm_cell_size": 4, "max_seq_len": 5}}
    expected = collect("CartPole-v1", **settings)
    actual = collect(
        shoal.rllib.register("CartPole-v1"), kind=shoal.rllib.EnvRunner, **settings, **NATIVE
    )
    assert_identical(actual, expected)


def test_equal_seeds_give_equal_episodes_and_env_runners_differ():
    name = shoal.rllib.register("CartPole-v1")
    one, again, other = (collect(name, worker=worker, **NATIVE) for worker in (1, 1, 2))
    assert_identical(one, again)
    with pytest.raises(AssertionError):
        assert_identical(one, other)


@pytest.mark.parametrize(("seeding", "shared"), [("adjacent", 3), ("independent", 0)])
def test_number_of_seeds_shared_by_two_env_runners(seeding, shared):
    name = shoal.rllib.register("CartPole-v1", seeding=seeding)
    observations = []
    for worker in (1, 2):
        with runner(name, num_envs=4, worker=worker, **NATIVE) as env_runner:
            env_runner.sample(num_timesteps=1, random_actions=True)
            rows = [tuple(episode.observations.data[0]) for episode in env_runner._ongoing_episodes]
            observations.append(set(rows))
    assert len(observations[0] & observations[1]) == shared
