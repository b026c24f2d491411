"""Vectors leak no references, memory, file descriptors or environments."""

import gc
import os
import sys
import weakref
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import InvalidActionError, ObservationError
from shoal.testing import ProbeEnv, assert_identical


class Fixed(gymnasium.Env):
    """Always returns the same objects, so that their references can be counted."""

    observation_space = spaces.Dict(
        {"a": spaces.Box(-1, 1, (2,), np.float32), "b": spaces.Discrete(10**6), "c": spaces.Text(9)}
    )
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (2,)), spaces.Text(5)))

    def __init__(self):
        self.array = np.zeros(2, np.float32)
        self.number = 123456
        self.text = "".join(["un", "interned"])
        self.observation = {"a": self.array, "b": self.number, "c": self.text}
        self.inner = {"x": np.zeros(3), "y": 0.125}
        self.info = {"value": 98765.5, "inner": self.inner}
        self.reward = 54321.5
        self.result = (self.observation, self.reward, False, False, self.info)
        self.end = (self.observation, self.reward, True, False, self.info)
        self.begin = (self.observation, self.info)
        self.bad = ({**self.observation, "a": np.zeros(3)}, self.reward, False, False, self.info)
        self.mode = "result"

    def objects(self):
        return [
            getattr(self, name)
            for name in (
                "array", "number", "text", "observation", "inner", "info", "reward", "result",
                "end", "begin", "bad",
            )
        ]  # fmt: skip

    def reset(self, *, seed=None, options=None):
        return self.begin

    def step(self, action):
        if self.mode == "raise":
            raise ArithmeticError
        return getattr(self, self.mode)


def counts(env):
    gc.collect()
    return [sys.getrefcount(thing) for thing in env.objects()]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("info_format", ["dict", "list"])
def test_reference_counts_do_not_change(mode, info_format):
    envs = shoal.make(Fixed, num_envs=3, autoreset_mode=mode, info_format=info_format)
    (env, *_) = envs._pool.envs
    actions = ([0, 1, 0], np.zeros((3, 2), np.float32), ("a", "b", "c"))

    def use_vector():
        envs.reset()
        for mode_name in ("result", "end", "result", "raise", "bad", "result"):
            envs.set_attr("mode", mode_name)
            try:
                envs.step(actions)
                envs.reset(options={"reset_mask": np.ones(3, np.bool_)})
            except (ArithmeticError, ObservationError):
                envs.reset()
        for wrong in ([0, 1, 0], ([0, 1, 9], *actions[1:]), (actions[0], np.zeros(2), actions[2])):
            with pytest.raises(InvalidActionError):
                envs.step(wrong)

    use_vector()
    before = counts(env)
    for _ in range(50):
        use_vector()
    assert counts(env) == before
    envs.close()


def test_actions_are_released():
    envs = shoal.make(ProbeEnv, num_envs=2)
    envs.reset()
    action = envs.action_space.sample()
    before = [sys.getrefcount(part) for part in action.values()]
    for _ in range(10):
        envs.step(action)
    assert [sys.getrefcount(part) for part in action.values()] == before


def test_batches_are_released_within_two_steps():
    envs = shoal.make("CartPole-v1", num_envs=2)
    envs.reset()
    observations, rewards, *_ = envs.step([0, 1])
    references = [weakref.ref(observations), weakref.ref(rewards)]
    del observations, rewards
    envs.step([0, 1])
    envs.step([0, 1])
    assert all(reference() is None for reference in references)
    envs.close()


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[:],
        lambda array: array.T.T,
        memoryview,
        torch.from_numpy,
        torch.from_dlpack,
        lambda array: array.reshape(-1, 1).reshape(array.shape),
    ],
)
def test_referenced_arrays_are_not_recycled(hold):
    envs = shoal.make("Pendulum-v1", num_envs=3)
    envs.reset(seed=0)
    held = []
    for step in range(20):
        observations, rewards, *_ = envs.step(np.full((3, 1), step % 3 - 1, np.float32))
        held.append((hold(observations), observations.copy()))
        held.append((hold(rewards), rewards.copy()))
        del observations, rewards
    for kept, copied in held:
        assert_identical(np.asarray(kept), copied)
    envs.close()


def test_arrays_modified_in_place_are_not_recycled():
    envs = shoal.make("CartPole-v1", num_envs=2)
    envs.reset(seed=0)
    for modify in (
        lambda array: array.setflags(write=False),
        lambda array: setattr(array, "shape", (8,)),
        lambda array: setattr(array, "dtype", np.int32),
    ):
        observations, *_ = envs.step([0, 1])
        modify(observations)
        del observations
        for _ in range(4):
            again, *_ = envs.step([0, 1])
            assert again.shape == (2, 4)
            assert again.dtype == np.float32
            assert again.flags.writeable
    envs.close()


def test_unclosed_vector_in_a_reference_cycle_is_collected():
    envs = shoal.make(ProbeEnv, num_envs=2)
    envs.reset()
    envs.set_attr("vector", envs)
    references = [weakref.ref(envs), *(weakref.ref(env) for env in envs._pool.envs)]
    del envs
    gc.collect()
    assert all(reference() is None for reference in references)


def test_reference_cycles_through_batches_are_collected():
    class Cyclic(ProbeEnv):
        observation_space = spaces.Tuple((spaces.Text(9), ProbeEnv.observation_space))
        vector = None

        def reset(self, *, seed=None, options=None):
            observation, info = super().reset(seed=seed)
            return ([self.vector], observation), info

    envs = shoal.make(Cyclic, num_envs=2, copy=False)
    envs.set_attr("vector", envs)
    envs.reset()
    reference = weakref.ref(envs)
    del envs
    gc.collect()
    assert reference() is None


def resident_kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize("copy", [True, False])
def test_closed_vectors_leave_no_resources(copy):
    def cycle():
        factories = [partial(ProbeEnv, slot) for slot in range(4)]
        envs = shoal.make(factories, backend="inline", copy=copy)
        envs.reset(seed=1)
        envs.step(envs.action_space.sample())
        envs.close()

    for _ in range(100):
        cycle()
    gc.collect()
    objects, memory = len(gc.get_objects()), resident_kilobytes()
    descriptors, still_open = len(os.listdir("/proc/self/fd")), ProbeEnv.open_count
    for _ in range(200):
        cycle()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert resident_kilobytes() - memory < 4096
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert ProbeEnv.open_count == still_open


def test_stepping_does_not_leak():
    envs = shoal.make([partial(ProbeEnv, slot) for slot in range(8)], statistics=True)
    envs.reset(seed=1)
    action = envs.action_space.sample()
    for _ in range(2000):
        envs.step(action)
    gc.collect()
    memory, objects = resident_kilobytes(), len(gc.get_objects())
    for _ in range(5_000):
        envs.step(action)
    gc.collect()
    assert resident_kilobytes() - memory < 2048
    assert len(gc.get_objects()) - objects < 100
    envs.close()
