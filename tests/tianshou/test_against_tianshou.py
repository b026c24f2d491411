"""What Tianshou's own vector gives, and what its collectors make of it, is given here too."""

from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from tianshou.algorithm.algorithm_base import Policy
from tianshou.data import AsyncCollector, Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, VectorEnvNormObs

import shoal
from shoal.testing import ProbeEnv, assert_identical
from shoal.tianshou import ShoalVectorEnv, make
from shoal.vector.wrappers import VectorWrapper
from tests.random_environments import RandomEnv

CARTPOLE = partial(gymnasium.make, "CartPole-v1", max_episode_steps=15)
PENDULUM = partial(gymnasium.make, "Pendulum-v1", max_episode_steps=7)
VECTOR = spaces.Box(-1, 1, (3,))
NESTED = spaces.Dict(a=spaces.Box(-1, 1, (3,)), b=spaces.Discrete(9))


class Leaning(Policy):
    """Acts by the observation alone: to the side that it leans to, or as strongly as it says."""

    # Without a state Tianshou 2.0's AsyncCollector fails, with its own vectors as well.
    has_state = False

    def forward(self, batch, state=None, **kwargs):
        obs = torch.as_tensor(np.asarray(batch.obs, np.float32))
        state = Batch(seen=obs) if self.has_state else None
        if isinstance(self.action_space, spaces.Discrete):
            return Batch(act=(obs[:, 2] > 0).long(), state=state)
        return Batch(act=torch.tanh(obs[:, :1]), state=state)


def leaning(envs):
    space = envs.action_space[0]
    scales = isinstance(space, spaces.Box)
    return Leaning(
        space,
        envs.observation_space[0],
        action_scaling=scales,
        action_bound_method="clip" if scales else None,
    )


def vectors(factory, count, **options):
    return make([factory] * count, **options), DummyVectorEnv([factory] * count)


def ids(rng, count):
    """Some of the slots, in any order."""
    return rng.permutation(count)[: rng.integers(1, count + 1)]


def seen(results):
    """Results without what may differ: the order of keys, the rewards' dtype, and whose int."""
    if len(results) == 2:
        return [in_order(part) for part in results]
    observations, rewards, *ends, infos = results
    ids = [int(info["env_id"]) for info in infos]
    told = [{key: info[key] for key in info if key != "env_id"} for info in infos]
    return in_order(observations), rewards.astype(np.float64), *ends, ids, told


def in_order(array):
    if array.dtype != np.object_:
        return array
    return [dict(sorted(each.items())) for each in array]


@pytest.mark.parametrize("backend", ["inline", "process"])
@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize(
    "factory",
    [
        partial(RandomEnv, VECTOR, spaces.Discrete(3)),
        partial(RandomEnv, spaces.Discrete(5), spaces.Box(-1, 1, (2,))),
        partial(RandomEnv, NESTED, spaces.MultiDiscrete([2, 3])),
        ProbeEnv,
    ],
    ids=["box", "discrete", "dict", "nested"],
)
def test_some_slots_are_stepped_and_reset(factory, backend, copies):
    start = {"start": "fork"} if backend == "process" else {}
    ours, theirs = vectors(factory, 4, backend=backend, copy=copies, **start)
    assert ours.seed(5) == theirs.seed(5) == [[5], [6], [7], [8]]
    assert_identical(seen(ours.reset()), seen(theirs.reset()))
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(40):
        slots = ids(rng, 4)
        actions = [theirs.action_space[slot].sample() for slot in slots]
        if not isinstance(theirs.action_space[0], spaces.Dict):
            actions = np.array(actions)
        got, expected = ours.step(actions, slots), theirs.step(actions, slots)
        assert_identical(seen(got), seen(expected))
        kept.append((got, expected))
        ended = slots[expected[2] | expected[3]]
        if ended.size:
            options = {"note": int(ended[0])}
            began = (envs.reset(ended, options=options) for envs in (ours, theirs))
            assert_identical(*map(seen, began))
    for got, expected in kept:  # what was given is nobody else's
        assert_identical(seen(got), seen(expected))
    ours.close()
    theirs.close()


def buffers(envs, steps=0, episodes=0, collector=Collector, seed=3):
    """What a collector leaves in its buffer, and its statistics."""
    buffer = VectorReplayBuffer(2_000, len(envs))
    policy = leaning(envs)
    policy.has_state = envs.is_async
    collecting = collector(policy, envs, buffer)
    collecting.reset(gym_reset_kwargs={"seed": seed})
    stats = [collecting.collect(n_step=steps) for _ in range(2) if steps]
    stats += [collecting.collect(n_episode=episodes) for _ in range(2) if episodes]
    collecting.close()
    return buffer, stats


def assert_same_buffers(one, other):
    (ours, our_stats), (theirs, their_stats) = one, other
    assert len(ours) == len(theirs) > 0
    for key in ("obs", "act", "rew", "terminated", "truncated", "done", "obs_next"):
        assert_identical(getattr(ours, key), getattr(theirs, key), key)
    assert_identical(ours.info.env_id, theirs.info.env_id)
    for mine, their in zip(our_stats, their_stats, strict=True):
        assert_identical(mine.returns, their.returns)
        assert_identical(mine.lens, their.lens)
        assert mine.n_collected_steps == their.n_collected_steps


@pytest.mark.parametrize(
    ("id_", "backend"),
    [("CartPole-v1", "kernel"), ("CartPole-v1", "inline"), ("Pendulum-v1", "kernel")],
)
def test_collectors_collect_the_same(id_, backend):
    factory, limit = (CARTPOLE, 15) if id_ == "CartPole-v1" else (PENDULUM, 7)
    for amount in ({"steps": 120}, {"episodes": 10}):
        ours = make(id_, 4, backend=backend, max_episode_steps=limit)
        same = buffers(ours, **amount), buffers(DummyVectorEnv([factory] * 4), **amount)
        assert_same_buffers(*same)
        assert same[0][0].truncated.any()
        assert ours.is_closed
        assert ours.vector.closed


@pytest.mark.parametrize("factory", [CARTPOLE, PENDULUM], ids=["discrete", "box"])
def test_random_actions_are_the_same(factory):
    samples = []
    for envs in vectors(factory, 3, backend="inline"):
        envs.seed(11)
        buffer = VectorReplayBuffer(100, 3)
        collector = Collector(leaning(envs), envs, buffer)
        collector.reset()
        collector.collect(n_step=60, random=True)
        samples.append((buffer.act, buffer.obs_next))
        collector.close()
    assert_identical(*samples)


def test_infos_reach_the_buffer():
    factory = partial(RandomEnv, VECTOR, spaces.Discrete(3), with_infos=False)
    told = []
    for envs in vectors(lambda: Telling(factory()), 3, backend="inline"):
        buffer, _ = buffers(envs, steps=30)
        told.append((buffer.info.time, buffer.info.env_id))
    assert_identical(*told)


class Telling(gymnasium.Wrapper):
    def reset(self, **kwargs):
        self.time = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.time += 1
        *rest, _ = self.env.step(action)
        return *rest, {"time": self.time}


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("of", ["ours", "ours, wrapped", "theirs"])
def test_any_vector_behind_this_frontend(mode, of):
    if of == "theirs":
        vector = gymnasium.vector.SyncVectorEnv([CARTPOLE] * 3, autoreset_mode=mode)
    else:
        vector = shoal.make("CartPole-v1", 3, autoreset_mode=mode, max_episode_steps=15)
        vector = VectorWrapper(vector) if "wrapped" in of else vector
    ours = buffers(ShoalVectorEnv(vector), steps=120)
    assert_same_buffers(ours, buffers(DummyVectorEnv([CARTPOLE] * 3), steps=120))
    assert vector.closed


def test_tianshous_wrapper_goes_around():
    normalized = [VectorEnvNormObs(envs) for envs in vectors(CARTPOLE, 3)]
    assert_same_buffers(*(buffers(envs, steps=90) for envs in normalized))
    ours, theirs = (envs.get_obs_rms() for envs in normalized)
    assert_identical(ours.mean, theirs.mean)
    assert_identical(ours.var, theirs.var)
    assert normalized[0].action_space == normalized[0].venv.action_space


@pytest.mark.parametrize("options", [{"backend": "inline"}, {"backend": "process"}, {}], ids=str)
def test_who_comes_first_does_not_change_what_a_slot_goes_through(options):
    ours = make("CartPole-v1", 3, wait_num=1, max_episode_steps=15, **options)
    buffer, _ = buffers(ours, steps=90, collector=AsyncCollector)
    alone, _ = buffers(DummyVectorEnv([CARTPOLE] * 3), steps=90)
    for slot in range(3):
        mine, theirs = buffer.buffers[slot], alone.buffers[slot]
        count = min(len(mine), len(theirs))
        assert count > 1
        for key in ("obs", "rew", "terminated", "truncated", "obs_next"):
            assert_identical(getattr(mine, key)[:count], getattr(theirs, key)[:count], key)
        np.testing.assert_array_equal(mine.act[:count], theirs.act[:count])  # as floats there
