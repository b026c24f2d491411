"""Results of steps and collectors equal those of Tianshou's own vector."""

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


class ObservationPolicy(Policy):
    """A deterministic policy that depends only on the observation."""

    # Tianshou 2.0's AsyncCollector fails without a state, also with Tianshou's own vectors.
    has_state = False

    def forward(self, batch, state=None, **kwargs):
        obs = torch.as_tensor(np.asarray(batch.obs, np.float32))
        state = Batch(observation=obs) if self.has_state else None
        if isinstance(self.action_space, spaces.Discrete):
            return Batch(act=(obs[:, 2] > 0).long(), state=state)
        return Batch(act=torch.tanh(obs[:, :1]), state=state)


def make_policy(envs):
    space = envs.action_space[0]
    scales = isinstance(space, spaces.Box)
    return ObservationPolicy(
        space,
        envs.observation_space[0],
        action_scaling=scales,
        action_bound_method="clip" if scales else None,
    )


def both_vectors(factory, count, **options):
    return make([factory] * count, **options), DummyVectorEnv([factory] * count)


def random_slots(rng, count):
    """Return some of the slots in random order."""
    return rng.permutation(count)[: rng.integers(1, count + 1)]


def normalized_results(results):
    """Remove allowed differences: order of keys, dtype of rewards and type of ids."""
    if len(results) == 2:
        return [sorted_keys(part) for part in results]
    observations, rewards, *ends, infos = results
    ids = [int(info["env_id"]) for info in infos]
    infos = [{key: info[key] for key in info if key != "env_id"} for info in infos]
    return sorted_keys(observations), rewards.astype(np.float64), *ends, ids, infos


def sorted_keys(array):
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
def test_steps_and_resets_of_some_slots(factory, backend, copies):
    start = {"start": "fork"} if backend == "process" else {}
    ours, theirs = both_vectors(factory, 4, backend=backend, copy=copies, **start)
    assert ours.seed(5) == theirs.seed(5) == [[5], [6], [7], [8]]
    assert_identical(normalized_results(ours.reset()), normalized_results(theirs.reset()))
    rng = np.random.default_rng(0)
    results = []
    for _ in range(40):
        slots = random_slots(rng, 4)
        actions = [theirs.action_space[slot].sample() for slot in slots]
        if not isinstance(theirs.action_space[0], spaces.Dict):
            actions = np.array(actions)
        actual, expected = ours.step(actions, slots), theirs.step(actions, slots)
        assert_identical(normalized_results(actual), normalized_results(expected))
        results.append((actual, expected))
        ended = slots[expected[2] | expected[3]]
        if ended.size:
            options = {"note": int(ended[0])}
            resets = (envs.reset(ended, options=options) for envs in (ours, theirs))
            assert_identical(*map(normalized_results, resets))
    for actual, expected in results:  # returned arrays are not modified later
        assert_identical(normalized_results(actual), normalized_results(expected))
    ours.close()
    theirs.close()


def collect(envs, steps=0, episodes=0, collector=Collector, seed=3):
    """Return the buffer and the statistics of a collector."""
    buffer = VectorReplayBuffer(2_000, len(envs))
    policy = make_policy(envs)
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
def test_collected_buffers_are_identical(id_, backend):
    factory, limit = (CARTPOLE, 15) if id_ == "CartPole-v1" else (PENDULUM, 7)
    for amount in ({"steps": 120}, {"episodes": 10}):
        ours = make(id_, 4, backend=backend, max_episode_steps=limit)
        pair = collect(ours, **amount), collect(DummyVectorEnv([factory] * 4), **amount)
        assert_same_buffers(*pair)
        assert pair[0][0].truncated.any()
        assert ours.is_closed
        assert ours.vector.closed


@pytest.mark.parametrize("factory", [CARTPOLE, PENDULUM], ids=["discrete", "box"])
def test_random_actions_are_identical(factory):
    samples = []
    for envs in both_vectors(factory, 3, backend="inline"):
        envs.seed(11)
        buffer = VectorReplayBuffer(100, 3)
        collector = Collector(make_policy(envs), envs, buffer)
        collector.reset()
        collector.collect(n_step=60, random=True)
        samples.append((buffer.act, buffer.obs_next))
        collector.close()
    assert_identical(*samples)


def test_infos_are_stored_in_the_buffer():
    factory = partial(RandomEnv, VECTOR, spaces.Discrete(3), with_infos=False)
    infos = []
    for envs in both_vectors(lambda: TimeInfo(factory()), 3, backend="inline"):
        buffer, _ = collect(envs, steps=30)
        infos.append((buffer.info.time, buffer.info.env_id))
    assert_identical(*infos)


class TimeInfo(gymnasium.Wrapper):
    def reset(self, **kwargs):
        self.time = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        self.time += 1
        *rest, _ = self.env.step(action)
        return *rest, {"time": self.time}


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("kind", ["shoal", "shoal, wrapped", "gymnasium"])
def test_supported_vectors(mode, kind):
    if kind == "gymnasium":
        vector = gymnasium.vector.SyncVectorEnv([CARTPOLE] * 3, autoreset_mode=mode)
    else:
        vector = shoal.make("CartPole-v1", 3, autoreset_mode=mode, max_episode_steps=15)
        vector = VectorWrapper(vector) if "wrapped" in kind else vector
    ours = collect(ShoalVectorEnv(vector), steps=120)
    assert_same_buffers(ours, collect(DummyVectorEnv([CARTPOLE] * 3), steps=120))
    assert vector.closed


def test_tianshous_wrapper():
    normalized = [VectorEnvNormObs(envs) for envs in both_vectors(CARTPOLE, 3)]
    assert_same_buffers(*(collect(envs, steps=90) for envs in normalized))
    ours, theirs = (envs.get_obs_rms() for envs in normalized)
    assert_identical(ours.mean, theirs.mean)
    assert_identical(ours.var, theirs.var)
    assert normalized[0].action_space == normalized[0].venv.action_space


@pytest.mark.parametrize("options", [{"backend": "inline"}, {"backend": "process"}, {}], ids=str)
def test_asynchronous_collection_does_not_change_a_slots_trajectory(options):
    ours = make("CartPole-v1", 3, wait_num=1, max_episode_steps=15, **options)
    buffer, _ = collect(ours, steps=90, collector=AsyncCollector)
    reference, _ = collect(DummyVectorEnv([CARTPOLE] * 3), steps=90)
    for slot in range(3):
        mine, theirs = buffer.buffers[slot], reference.buffers[slot]
        count = min(len(mine), len(theirs))
        assert count > 1
        for key in ("obs", "rew", "terminated", "truncated", "obs_next"):
            assert_identical(getattr(mine, key)[:count], getattr(theirs, key)[:count], key)
        np.testing.assert_array_equal(mine.act[:count], theirs.act[:count])  # dtypes differ
