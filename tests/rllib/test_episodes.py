"""RLlib collects the same episodes from Shoal's vectors as from its own."""

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
from tests.rllib.collecting import NATIVE, collected, runner

EITHER_RUNNER = pytest.mark.parametrize("kind", [SingleAgentEnvRunner, shoal.rllib.EnvRunner])


class Levers(gymnasium.Env):
    """Actions with several parts; an episode is terminated, or truncated, at random."""

    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.Dict(
        force=spaces.Box(-2.0, 5.0, (3,)),
        gear=spaces.Discrete(3),
        keys=spaces.MultiDiscrete([2, 4]),
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observed(), {"began": True}

    def step(self, action):
        assert action in self.action_space
        ends = self.np_random.random() < 0.2
        reward = float(action["force"].sum()) + int(action["gear"])
        info = {"keys": action["keys"].copy()} if ends else {}
        return self._observed(), reward, ends, not ends and self.np_random.random() < 0.2, info

    def _observed(self):
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
def test_episodes_are_those_of_rllibs_own_vectors(kind, env, samples):
    expected = collected(env, samples=samples)
    got = collected(shoal.rllib.register(env), samples=samples, kind=kind, **NATIVE)
    assert_identical(got, expected)
    assert {any(episode["ended"]) for episode in expected} == {True, False}  # or cut


@EITHER_RUNNER
@pytest.mark.parametrize("clip", [False, True])
def test_actions_are_clipped_or_not_as_rllib_does(kind, clip):
    fitting = {"normalize_actions": False, "clip_actions": clip}
    env = "Levers-v0" if clip else "CartPole-v1"  # which has nothing to clip
    expected = collected(env, environment=fitting)
    name = shoal.rllib.register(env)
    got = collected(name, environment=fitting, kind=kind, **NATIVE)
    assert_identical(got, expected)


@EITHER_RUNNER
def test_random_actions_give_the_same_episodes(kind):
    expected = collected("CartPole-v1", random_actions=True)
    got = collected(shoal.rllib.register("CartPole-v1"), random_actions=True, kind=kind, **NATIVE)
    assert_identical(got, expected)


@EITHER_RUNNER
def test_infos_of_kernels_arrive_in_episodes(kind):
    def flat(env, spaces, device):
        return FlattenObservations()

    settings = {"env_to_module_connector": flat, "random_actions": True, "samples": (80,)}
    expected = collected("Taxi-v3", **settings)
    got = collected(shoal.rllib.register("Taxi-v3"), kind=kind, **settings, **NATIVE)
    assert_identical(got, expected)
    assert all("action_mask" in info for episode in got for info in episode["infos"])


def test_statistics_are_told_at_the_end_of_episodes():
    name = shoal.rllib.register("CartPole-v1", statistics=True)
    for episode in collected(name, samples=(200,), **NATIVE):
        last = episode["infos"][-1]
        assert ("episode" in last) == any(episode["ended"])
        if any(episode["ended"]):
            assert last["episode"]["l"] == episode["steps"][1]


def test_a_module_with_a_state_collects_the_same():
    settings = {"model_config": {"use_lstm": True, "lstm_cell_size": 4, "max_seq_len": 5}}
    expected = collected("CartPole-v1", **settings)
    got = collected(
        shoal.rllib.register("CartPole-v1"), kind=shoal.rllib.EnvRunner, **settings, **NATIVE
    )
    assert_identical(got, expected)


def test_equal_seeds_collect_the_same_and_env_runners_differ():
    name = shoal.rllib.register("CartPole-v1")
    one, again, other = (collected(name, worker=worker, **NATIVE) for worker in (1, 1, 2))
    assert_identical(one, again)
    with pytest.raises(AssertionError):
        assert_identical(one, other)


@pytest.mark.parametrize(("seeding", "shared"), [("adjacent", 3), ("independent", 0)])
def test_how_many_seeds_two_env_runners_share(seeding, shared):
    name = shoal.rllib.register("CartPole-v1", seeding=seeding)
    first = []
    for worker in (1, 2):
        with runner(name, num_envs=4, worker=worker, **NATIVE) as made:
            made.sample(num_timesteps=1, random_actions=True)
            rows = [tuple(episode.observations.data[0]) for episode in made._ongoing_episodes]
            first.append(set(rows))
    assert len(first[0] & first[1]) == shared
