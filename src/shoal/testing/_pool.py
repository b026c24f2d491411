"""Conformance tests for pools of any environments."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate

from shoal.errors import SlotFinishedError
from shoal.pools import Batch, Pool
from shoal.testing._identical import assert_identical

__all__ = ["PoolConformance"]

# The assertions of unittest, since this module must not depend on pytest.
_expect = unittest.TestCase()


class PoolConformance:
    """Tests of the pool contract that apply to any environments.

    A subclass defines :meth:`make_pool`. All randomness of its environments must derive from the
    seed passed to ``reset``.
    """

    num_envs = 5
    steps = 60

    def make_pool(self, num_envs: int, **options: Any) -> Pool:
        """Make the pool under test; the options are ``autoreset_mode`` and ``copy``."""
        raise NotImplementedError

    def actions(self, pool: Pool, count: int) -> list[Any]:
        """Return a reproducible list of action batches for all slots."""
        pool.spaces.action.seed(17)
        return [pool.spaces.action.sample() for _ in range(count)]

    def started(self, **options: Any) -> Pool:
        """Return a pool whose slots have been reset with the seeds 0, 1, 2, ..."""
        pool = self.make_pool(self.num_envs, **options)
        pool.reset(seeds=range(self.num_envs))
        pool.recv()
        return pool

    def trajectory(self, pool: Pool, actions: list[Any]) -> list[Batch]:
        """Return the batches for a list of action batches, by ``send`` and ``recv``."""
        batches = []
        for action in actions:
            pool.send(action)
            batches.append(pool.recv())
        return batches

    def test_batch_has_every_slot_once_in_order(self) -> None:
        pool = self.make_pool(self.num_envs)
        pool.reset(seeds=range(self.num_envs))
        for batch in (pool.recv(), *self.trajectory(pool, self.actions(pool, 3))):
            assert_identical(batch.slots, np.arange(self.num_envs))
            assert batch.observations in pool.spaces.observation
            assert batch.rewards.shape == (self.num_envs,)
            assert batch.rewards.dtype == np.float64
            assert batch.terminated.dtype == batch.truncated.dtype == np.bool_
        pool.close()

    def test_same_seeds_give_same_trajectories(self) -> None:
        for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            runs = []
            for _ in range(2):
                pool = self.started(autoreset_mode=mode)
                runs.append(self.trajectory(pool, self.actions(pool, self.steps)))
                pool.close()
            for first, second in zip(*runs, strict=True):
                assert_identical(tuple(first), tuple(second))

    def test_slots_stepped_alone_do_as_they_do_together(self) -> None:
        together, separate = self.started(), self.started()
        for action in self.actions(together, 8):
            together.send(action)
            expected = together.recv()
            for slot in reversed(range(self.num_envs)):
                separate.send(self.action_of(separate, action, slot), slots=[slot])
            received: list[int] = []
            while len(received) < self.num_envs:
                batch = separate.recv(min_slots=1)
                for row, slot in enumerate(batch.slots):
                    received.append(int(slot))
                    assert batch.rewards[row] == expected.rewards[slot]
                    assert batch.terminated[row] == expected.terminated[slot]
                    assert batch.truncated[row] == expected.truncated[slot]
            assert sorted(received) == list(range(self.num_envs))
            assert_identical(separate.latest(), expected.observations)
        together.close()
        separate.close()

    def action_of(self, pool: Pool, batch: Any, slot: int) -> Any:
        """Extract one slot's action from a batch, as a batch of one."""
        single = list(iterate(pool.spaces.action, batch))[slot]
        return _batch_of_one(single)

    def test_a_slot_in_flight_is_not_sent_again(self) -> None:
        pool = self.started()
        first, second = self.actions(pool, 2)
        pool.send(first)
        with _expect.assertRaisesRegex(AlreadyPendingCallError, "slot 0"):
            pool.send(second)
        with _expect.assertRaisesRegex(AlreadyPendingCallError, "slot 1"):
            pool.reset(slots=[1])
        assert len(pool.recv().slots) == self.num_envs
        pool.send(second)
        pool.recv()
        pool.close()

    def test_a_step_in_two_halves_is_a_step(self) -> None:
        whole, halves = self.started(), self.started()
        for action in self.actions(whole, 20):
            halves.begin_step(action)
            assert halves.in_flight == self.num_envs
            assert_identical(halves.end_step(), whole.step(action))
            assert halves.in_flight == 0
        with _expect.assertRaises(NoAsyncCallError):
            halves.end_step()
        halves.begin_step(action)
        with _expect.assertRaises(AlreadyPendingCallError):
            halves.begin_step(action)
        with _expect.assertRaises(AlreadyPendingCallError):
            halves.step(action)
        assert_identical(tuple(halves.recv()[1:]), whole.step(action))
        whole.close()
        halves.close()

    def test_dropped_slots_are_not_in_flight(self) -> None:
        pool = self.started()
        pool.drop()
        (action,) = self.actions(pool, 1)
        pool.begin_step(action)
        pool.drop()
        assert pool.in_flight == 0
        pool.send(action)
        pool.drop()
        pool.reset(seeds=range(self.num_envs))
        assert len(pool.recv().slots) == self.num_envs
        pool.close()

    def test_receiving_without_sending_is_refused(self) -> None:
        pool = self.started()
        with _expect.assertRaises(NoAsyncCallError):
            pool.recv(timeout=1.0)
        pool.close()

    def test_invalid_slots_are_refused(self) -> None:
        pool = self.started()
        with _expect.assertRaisesRegex(IndexError, f"slot {self.num_envs}"):
            pool.reset(slots=[self.num_envs])
        with _expect.assertRaises(ValueError):
            pool.reset(slots=[1, 1])
        pool.close()

    def test_a_finished_slot_is_refused_when_autoreset_is_disabled(self) -> None:
        pool = self.started(autoreset_mode=AutoresetMode.DISABLED)
        for action in self.actions(pool, 5000):
            pool.send(action)
            batch = pool.recv()
            if (done := np.flatnonzero(batch.terminated | batch.truncated)).size:
                break
        else:
            raise AssertionError("no episode ended within 5000 steps: use shorter episodes")
        with _expect.assertRaisesRegex(SlotFinishedError, f"slot {done[0]}"):
            pool.send(action)
        pool.reset(slots=done)
        assert_identical(pool.recv().slots, done)
        pool.send(action)
        pool.recv()
        pool.close()

    def test_later_steps_do_not_change_returned_arrays(self) -> None:
        pool = self.started()
        batches = self.trajectory(pool, self.actions(pool, 6))
        copies = [(batch.rewards.copy(), str(batch.observations)) for batch in batches]
        self.trajectory(pool, self.actions(pool, 6))
        for batch, (rewards, observations) in zip(batches, copies, strict=True):
            assert_identical(batch.rewards, rewards)
            assert str(batch.observations) == observations
        pool.close()

    def test_views_stay_valid_until_the_batch_after_next(self) -> None:
        pool = self.started(copy=False)
        previous, text = None, ""
        for action in self.actions(pool, 20):
            pool.send(action)
            batch = pool.recv()
            if previous is not None:
                assert str(tuple(previous[:5])) == text
            previous, text = batch, str(tuple(batch[:5]))
        pool.close()

    def test_worker_states_cover_every_slot(self) -> None:
        pool = self.started()
        states = pool.worker_states()
        assert {slot for state in states for slot in state.slots} == set(range(self.num_envs))
        assert len({state.name for state in states}) == len(states)
        assert all(state.restarts == 0 for state in states)
        pool.close()

    def test_using_a_closed_pool_is_refused(self) -> None:
        pool = self.started()
        (action,) = self.actions(pool, 1)
        pool.close()
        pool.close()
        for use in (pool.reset, lambda: pool.send(action), pool.recv, pool.latest):
            with _expect.assertRaises(ClosedEnvironmentError):
                use()


def _batch_of_one(single: Any) -> Any:
    if isinstance(single, dict):
        return {key: _batch_of_one(value) for key, value in single.items()}
    if isinstance(single, tuple):
        return tuple(_batch_of_one(value) for value in single)
    return np.asarray(single)[None]
