"""`send` and `recv`: stepping some slots at a time."""

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.testing import assert_identical


@pytest.fixture
def envs():
    with shoal.make("CartPole-v1", num_envs=4) as vector:
        vector.reset(seed=3)
        yield vector


def test_recv_returns_slots_in_order_of_completion(envs):
    envs.send([1, 0], slots=[2, 0])
    envs.send([1], slots=[3])
    batch = envs.recv(min_slots=1)
    assert_identical(batch.slots, np.array([2]))
    batch = envs.recv(min_slots=2)
    assert_identical(batch.slots, np.array([0, 3]))
    assert batch.observations.shape == (2, 4)
    assert batch.infos == {}


def test_recv_returns_all_slots_in_flight_by_default(envs):
    envs.send([1, 0, 1, 0])
    assert_identical(envs.recv(min_slots=3).slots, np.array([0, 1, 2]))
    envs.send([1], slots=[1])
    assert_identical(envs.recv().slots, np.array([3, 1]))


def test_partial_steps_equal_full_steps(envs):
    with shoal.make("CartPole-v1", num_envs=4) as other:
        other.reset(seed=3)
        actions = np.array([1, 0, 1, 0])
        for _ in range(100):
            whole = envs.step(actions)
            other.send(actions[[1, 3]], slots=np.array([1, 3]))
            other.send(actions[[0, 2]], slots=np.array([True, False, True, False]))
            batch = other.recv()
            assert_identical(batch.slots, np.array([1, 3, 0, 2]))
            assert_identical(batch.observations, whole[0][batch.slots])
            assert_identical(batch.rewards, whole[1][batch.slots])
            assert_identical(batch.terminated, whole[2][batch.slots])


def test_batch_of_views_has_only_its_rows():
    with shoal.make("CartPole-v1", num_envs=4, copy=False) as envs:
        envs.reset(seed=3)
        envs.send([1, 0], slots=[2, 0])
        batch = envs.recv()
        assert len(batch.observations) == len(batch.rewards) == len(batch.slots) == 2


@pytest.mark.parametrize("min_slots", [0, 3, -1])
def test_recv_refuses_more_slots_than_in_flight(envs, min_slots):
    envs.send([1, 0], slots=[2, 0])
    with pytest.raises(ValueError, match="2 slots are in flight"):
        envs.recv(min_slots=min_slots)
    assert len(envs.recv().slots) == 2


def test_array_of_slots_is_copied(envs):
    slots = np.array([2, 0])
    envs.send([1, 0], slots)
    slots[:] = [1, 3]
    batch = envs.recv()
    assert_identical(batch.slots, np.array([2, 0]))
    batch.slots[:] = 99
    assert slots.tolist() == [1, 3]


@pytest.mark.parametrize("copy", [True, False])
def test_statistics_of_a_partial_batch(copy):
    with shoal.make("CartPole-v1", 4, copy=copy, statistics=True, max_episode_steps=1) as vector:
        vector.reset(seed=0)
        vector.send([0, 1, 0], slots=[3, 1, 2])
        infos = vector.recv(min_slots=2).infos
        assert infos["_episode"].tolist() == [True, True]
        assert infos["episode"]["r"].tolist() == [1.0, 1.0]


def test_fractional_min_slots_is_refused(envs):
    envs.send([1, 0], slots=[2, 0])
    with pytest.raises(TypeError):
        envs.recv(min_slots=1.5)


@pytest.mark.parametrize("slots", [[0.5], ["a"], [[0]], np.array([True])])
def test_invalid_slots(envs, slots):
    with pytest.raises(TypeError, match="slots must be"):
        envs.send([1], slots=slots)


def test_masked_reset_is_refused_with_slots_in_flight(envs):
    envs.send([1], slots=[3])
    with pytest.raises(AlreadyPendingCallError, match="1 slots are in flight"):
        envs.reset(options={"reset_mask": np.array([True, False, False, False])})
    assert_identical(envs.recv().slots, np.array([3]))


def test_empty_send(envs):
    envs.send(np.zeros(0, np.int64), slots=[])
    assert len(envs.recv().slots) == 0
