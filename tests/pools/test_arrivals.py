"""What comes for slots in flight: it reaches whom it is for, once, and nobody else."""

import numpy as np
import pytest
from gymnasium import spaces

from shoal._spaces import Layout
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch

LAYOUT = Layout.of(spaces.Box(-1, 1e6, (), np.float64))


@pytest.fixture
def arrivals():
    return Arrivals(LAYOUT)


def batch(*slots, value=0.0):
    """Rows of these slots, which say their slot and this value."""
    numbers = np.array(slots, np.int64)
    nothing = np.zeros(len(slots), np.bool_)
    return Batch(numbers, numbers + value, np.full(len(slots), value), nothing, nothing, None)


def test_slots_arrive_in_the_order_in_which_they_are_asked_for(arrivals):
    arrivals.expect([0, 1, 2, 3], 1)
    arrivals.add(1, batch(3, 1, value=0.5))
    arrivals.add(1, batch(0, 2, value=0.25))
    taken = arrivals.take([2, 3, 0, 1])
    np.testing.assert_array_equal(taken.slots, [2, 3, 0, 1])
    np.testing.assert_array_equal(taken.observations, [2.25, 3.5, 0.25, 1.5])
    np.testing.assert_array_equal(taken.rewards, [0.25, 0.5, 0.25, 0.5])
    assert not arrivals.flying
    assert not arrivals.done


@pytest.mark.parametrize("number", [0, 1, 2, 4, 99])
def test_an_answer_of_another_number_reaches_nobody(arrivals, number):
    arrivals.expect([0, 1], 3)
    arrivals.add(number, batch(0, 1))
    assert not arrivals.done
    assert arrivals.missing() == [0, 1]
    assert not arrivals.is_complete(3)
    arrivals.add(3, batch(0, 1, value=0.5))
    np.testing.assert_array_equal(arrivals.take([0, 1]).rewards, [0.5, 0.5])


def test_an_answer_that_comes_after_its_slot_was_sent_again_reaches_nobody(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.add(1, batch(0))
    arrivals.take([0])
    arrivals.expect([0], 2)
    arrivals.add(1, batch(0, 1, value=0.25))  # for 0 it is late
    assert arrivals.missing() == [0]
    np.testing.assert_array_equal(arrivals.take([1]).rewards, [0.25])
    arrivals.add(2, batch(0, value=0.5))
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.5])


def test_an_answer_that_comes_twice_counts_once(arrivals):
    arrivals.expect([0], 1)
    arrivals.add(1, batch(0, value=0.25))
    arrivals.add(1, batch(0, value=0.5))
    arrivals.fail(1, [0], ValueError("too late"))
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.25])
    arrivals.add(1, batch(0, value=0.75))
    assert not arrivals.done


def test_an_answer_for_a_slot_that_is_not_in_flight_reaches_nobody(arrivals):
    arrivals.expect([1], 1)
    arrivals.add(1, batch(0, 1, 2))
    assert list(arrivals.done) == [1]
    assert not arrivals.fail(7, None, ValueError("of nobody"))
    assert list(arrivals.done) == [1]


def test_a_failure_of_another_number_reaches_nobody(arrivals):
    arrivals.expect([0], 2)
    assert not arrivals.fail(1, [0], ValueError("late"))
    assert not arrivals.fail(1, None, ValueError("late"))
    assert arrivals.missing() == [0]


def test_a_failure_without_slots_is_of_all_that_the_request_still_waits_for(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.expect([2], 2)
    arrivals.add(1, batch(0, value=0.5))
    assert arrivals.fail(1, None, ValueError("it broke"))
    assert arrivals.is_complete(1)
    assert arrivals.missing() == [2]
    with pytest.raises(ValueError, match="it broke"):
        arrivals.take([0, 1])
    np.testing.assert_array_equal(arrivals.take([0]).rewards, [0.5])  # which has not failed
    assert list(arrivals.flying) == [2]


def test_what_was_not_sent_after_all_is_not_waited_for(arrivals):
    arrivals.expect([0, 1], 1)
    arrivals.expect([2], 2)
    arrivals.withdraw(1)
    assert list(arrivals.flying) == [2]
    arrivals.add(1, batch(0, 1, 2))
    assert not arrivals.done
