"""Copying of vectors, and of observations by vectors."""

import copy
import threading
from functools import partial

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode

import shoal
from shoal.testing import ProbeEnv, assert_identical


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda envs: cloudpickle.loads(cloudpickle.dumps(envs))]
)
@pytest.mark.parametrize("views", [True, False])
def test_copy_continues_from_the_state_of_the_original(duplicate, views):
    envs = shoal.make(ProbeEnv, num_envs=3, copy=views, statistics=True)
    envs.reset(seed=1)
    actions = [envs.action_space.sample() for _ in range(60)]
    for action in actions[:30]:
        envs.step(action)
    other = duplicate(envs)
    for action in actions[30:]:
        ours, theirs = envs.step(action), other.step(action)
        for infos in (ours[4], theirs[4]):
            infos.pop("episode", {}).pop("t", None)
        assert_identical(ours, theirs)
    mask = np.array([True, False, False])
    assert_identical(
        envs.reset(seed=4, options={"reset_mask": mask}),
        other.reset(seed=4, options={"reset_mask": mask}),
    )
    envs.close()
    other.step(actions[0])
    other.close()


def test_copying_with_slots_in_flight_is_refused():
    envs = shoal.make("CartPole-v1", num_envs=2)
    envs.reset()
    envs.send([0, 1])
    with pytest.raises(AlreadyPendingCallError, match="2 slots are in flight"):
        copy.deepcopy(envs)
    envs.close()


class Thing(gymnasium.Space):
    def sample(self, mask=None, probability=None):
        return threading.Lock()

    def contains(self, x):
        return True

    def __eq__(self, other):
        return isinstance(other, Thing)


class Holder(gymnasium.Env):
    observation_space = spaces.Tuple((Thing(), spaces.Discrete(2)))
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.thing = threading.Lock()

    def reset(self, *, seed=None, options=None):
        return (self.thing, 0), {}

    def step(self, action):
        return (self.thing, 1), 0.0, True, False, {}


def test_views_share_objects_with_the_environment():
    envs = shoal.make(Holder, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
    (things, _), _ = envs.reset()
    (thing,) = envs.get_attr("thing")
    assert things[0] is thing
    *_, infos = envs.step([0])
    assert infos["final_obs"][0][0] is thing
    envs.close()


def test_failed_steps_do_not_invalidate_views():
    class Failing(gymnasium.Wrapper):
        broken = False

        def step(self, action):
            if self.broken:
                raise ArithmeticError
            return self.env.step(action)

    make = partial(gymnasium.make, "CartPole-v1")
    envs = shoal.make([make, make, lambda: Failing(make())], copy=False)
    envs.reset(seed=0)
    observations, *_ = envs.step([0, 1, 0])
    kept = observations.copy()
    envs.envs[2].broken = True
    for _ in range(5):
        with pytest.raises(ArithmeticError):
            envs.step([0, 1, 0])
    assert_identical(observations, kept)
    envs.close()
