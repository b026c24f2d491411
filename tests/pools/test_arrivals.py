"""Answers for slots in flight count once, and only under the request of their slots."""

import numpy as np
import pytest
from gymnasium import spaces

from shoal._spaces import Layout
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch

LAYOUT = Layout.of(spaces.Box(-1, 1e6, (), np.float64))


@pytest.fixture
def arrivals():
    return Arrivals(LAYOUT, 5)


def batch(*slots, value=0.0):
    """Return rows that contain the number of their slot, plus this value."""
    numbers = np.array(slots, np.int64)
    nothing = np.zeros(len(slots), np.bool_)
    return Batch(numbers, numbers + value, np.full(len(slots), value), nothing, nothing, None)


def in_flight(arrivals):
    return arrivals.ledger.slots_in_flight().tolist()


def test_rows_are_taken_in_the_requested_order(arrivals):
    arrivals.expect([0, 1, 2, 3], 1)
    arrivals.add(1, batch(3, 1, value=0.5))
    arrivals.add(1, batch(0, 2, value=0.25))
    taken = arrivals.take([2, 3, 0, 1])
    np.testing.assert_array_equal(taken.slots, [2, 3, 0, 1])
    np.testing.assert_array_equal(taken.observations, [2.25, 3.5, 0.25, 1.5])
    np.testing.assert_array_equal(taken.rewards, [0.25, 0.5, 0.25, 0.5])
    assert in_flight(arrivals) == []
    assert arrivals.ledger.done == 0


@pytest.mark.parametrize("request_number", [0, 1, 2, 4, 99])
def test_an_answer_to_another_request_is_ignored(arrivals, request_number):
    arrivals.expect([0, 1], 3)
    arrivals.add(request_number, batch(0, 1))
    assert arrivals.ledger.done == 0
    assert arrivals.missing() == [0, 1]
    assert not arrivals.is_complete(3)
    arrivals.add(3, batch(0, 1, value=0.5))
    np.testing.assert_array_equal(arrivals.take([0, 1]).rewards, [0.5, 0.5])


def test_an_answer_that_arrives_after_its_slot_was_sent_again_is_ignored(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.add(1, batch(0))
    arrivals.take([0])
    arrivals.expect([0], 2)
    arrivals.add(1, batch(0, 1, value=0.25))  # late for slot 0
    assert arrivals.missing() == [0]
    np.testing.assert_array_equal(arrivals.take([1]).rewards, [0.25])
    arrivals.add(2, batch(0, value=0.5))
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.5])


def test_an_answer_that_arrives_twice_counts_once(arrivals):
    arrivals.expect([0], 1)
    arrivals.add(1, batch(0, value=0.25))
    arrivals.add(1, batch(0, value=0.5))
    arrivals.fail(1, [0], ValueError("too late"))
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.25])
    arrivals.add(1, batch(0, value=0.75))
    assert arrivals.ledger.done == 0


def test_an_answer_for_an_idle_slot_is_ignored(arrivals):
    arrivals.expect([1], 1)
    arrivals.add(1, batch(0, 1, 2))
    assert arrivals.ledger.done == 1
    assert not arrivals.fail(7, None, ValueError("unknown request"))
    assert arrivals.ledger.done == 1
    assert arrivals.take([1]).slots.tolist() == [1]


def test_a_failure_of_another_request_is_ignored(arrivals):
    arrivals.expect([0], 2)
    assert not arrivals.fail(1, [0], ValueError("late"))
    assert not arrivals.fail(1, None, ValueError("late"))
    assert arrivals.missing() == [0]


def test_a_failure_without_slots_fails_all_slots_that_the_request_awaits(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.expect([2], 2)
    arrivals.add(1, batch(0, value=0.5))
    assert arrivals.fail(1, None, ValueError("it broke"))
    assert arrivals.is_complete(1)
    assert arrivals.missing() == [2]
    with pytest.raises(ValueError, match="it broke"):
        arrivals.take([0, 1])
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.5])  # slot 0 has not failed
    assert in_flight(arrivals) == [2]


def test_slots_of_a_withdrawn_request_are_idle_again(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.expect([2], 2)
    arrivals.withdraw(1)
    assert in_flight(arrivals) == [2]
    arrivals.add(1, batch(0, 1, 2))
    assert arrivals.ledger.done == 0


def test_reassigned_slots_are_answered_by_the_new_request_alone(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.reassign([1], 2)
    arrivals.add(1, batch(0, 1, value=0.5))
    assert arrivals.missing() == [1]
    arrivals.add(2, batch(1, value=0.25))
    np.testing.assert_array_equal(arrivals.take([0, 1]).rewards, [0.5, 0.25])


def test_rows_can_be_put_for_slots_in_flight(arrivals):
    arrivals.expect([0, 1], 4)
    earlier = batch(1, value=0.5)
    arrivals.put({1: (earlier, 0)}, 4)
    assert arrivals.missing() == [0]
    np.testing.assert_array_equal(arrivals.take([1]).rewards, [0.5])
