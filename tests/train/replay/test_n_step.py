"""N-step transitions, compared with a search through the history of each slot."""

import copy
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._replay import NStepBuffer

GAMMA = 0.9


class Event(NamedTuple):
    """A step of one slot, with an observation and an action that occur only once."""

    observation: float
    action: float
    reward: float
    next_observation: float
    terminated: bool
    truncated: bool


def reference_transitions(history, steps, gamma):
    """Return the complete transitions of one slot, by the number of their first step."""
    transitions = {}
    for start, first in enumerate(history):
        total, weight = 0.0, 1.0
        for length, event in enumerate(history[start : start + steps], start=1):
            total += weight * event.reward
            weight *= gamma
            ended = event.terminated or event.truncated
            if ended or length == steps:
                discount = 0.0 if event.terminated else weight
                row = (first.observation, first.action, total, event.next_observation, discount)
                transitions[start] = row
                break
    return transitions


def histories(ends, rewards, slots):
    """Return steps of all slots, whose observations are unique."""
    rows = []
    counter = 0
    current = [1000.0 * slot for slot in range(slots)]
    for step_ends, step_rewards in zip(ends, rewards, strict=True):
        row = []
        for slot in range(slots):
            counter += 1
            terminated, truncated = step_ends[slot]
            after = 1000.0 * slot + counter
            row.append(
                Event(
                    current[slot], float(counter), step_rewards[slot], after, terminated, truncated
                )
            )
            # A new episode starts with another observation.
            current[slot] = after + 0.5 if terminated or truncated else after
        rows.append(row)
    return rows


def add(buffer, row):
    columns = [np.array(column) for column in zip(*row, strict=True)]
    return buffer.add(
        columns[0][:, None], columns[1], columns[2], columns[3][:, None], columns[4], columns[5]
    )


def rows_of(transitions):
    return [
        (float(o[0]), float(a), pytest.approx(float(r)), float(n[0]), pytest.approx(float(d)))
        for o, a, r, n, d in zip(*transitions, strict=True)
    ]


@st.composite
def runs(draw):
    slots = draw(st.integers(1, 4))
    length = draw(st.integers(1, 14))
    end_weight = draw(st.sampled_from([0, 1, 3]))
    end = st.sampled_from(
        [(False, False)] * 4 + [(True, False), (False, True), (True, True)] * end_weight
    )
    ends = draw(st.lists(st.tuples(*[end] * slots), min_size=length, max_size=length))
    numbers = st.integers(-8, 8).map(float)
    rewards = draw(st.lists(st.tuples(*[numbers] * slots), min_size=length, max_size=length))
    return histories(ends, rewards, slots)


@settings(max_examples=200, deadline=None)
@given(runs(), st.integers(1, 5), st.sampled_from([0.0, GAMMA, 1.0]))
def test_every_transition_is_returned_once_when_it_is_complete(run, steps, gamma):
    buffer, slots = NStepBuffer(steps, gamma), len(run[0])
    complete = [{} for _ in range(slots)]
    for number, row in enumerate(run):
        returned = rows_of(add(buffer, row))
        expected = []
        for slot in range(slots):
            history = [past[slot] for past in run[: number + 1]]
            now = reference_transitions(history, steps, gamma)
            expected += [now[start] for start in now.keys() - complete[slot].keys()]
            complete[slot] = now
        assert sorted(returned, key=lambda row: row[1]) == sorted(expected, key=lambda row: row[1])
    # Incomplete transitions start in the last steps of an unfinished episode.
    for slot in range(slots):
        missing = set(range(len(run))) - complete[slot].keys()
        assert len(missing) < steps
        assert missing == set(range(len(run) - len(missing), len(run)))


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 5), st.data())
def test_incomplete_transitions_are_restored(run, steps, data):
    cut = data.draw(st.integers(0, len(run)))
    one, other = NStepBuffer(steps, GAMMA), NStepBuffer(steps, GAMMA)
    for row in run[:cut]:
        add(one, row)
    add(other, run[0])
    other.restore(copy.deepcopy(one.state()))
    for row in run[cut:]:
        assert all(map(np.array_equal, add(one, row), add(other, row)))


def test_a_state_can_restore_several_buffers():
    run = histories([[(False, False)]] * 6, [[1.0]] * 6, 1)
    buffer = NStepBuffer(3, GAMMA)
    for row in run[:1]:
        add(buffer, row)
    state = buffer.state()
    before = copy.deepcopy(state)
    others = [NStepBuffer(3, GAMMA), NStepBuffer(3, GAMMA)]
    for other in others:
        other.restore(state)
    for row in run[1:]:
        expected = rows_of(add(buffer, row))
        assert [rows_of(add(other, row)) for other in others] == [expected, expected]
    assert state["lengths"].tolist() == before["lengths"].tolist()
    assert len(state["recent"]) == len(before["recent"])


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 5), st.data())
def test_a_cleared_buffer_equals_a_new_one(run, steps, data):
    cut = data.draw(st.integers(0, len(run)))
    one, fresh = NStepBuffer(steps, GAMMA), NStepBuffer(steps, GAMMA)
    for row in run[:cut]:
        add(one, row)
    one.clear()
    for row in run[cut:]:
        assert rows_of(add(one, row)) == rows_of(add(fresh, row))


@pytest.mark.parametrize("steps", [1, 3])
def test_arguments_are_neither_modified_nor_kept(steps):
    """Vectors with ``copy=False`` reuse their arrays."""
    run = histories([[(False, False), (False, True)]] * 4, [[1.0, 2.0]] * 4, 2)
    reference, tested = NStepBuffer(steps, GAMMA), NStepBuffer(steps, GAMMA)
    for row in run:
        expected = rows_of(add(reference, row))
        columns = [np.array(column) for column in zip(*row, strict=True)]
        arguments = [columns[0][:, None], columns[1], columns[2], columns[3][:, None], *columns[4:]]
        before = [column.copy() for column in arguments]
        returned = rows_of(tested.add(*arguments))
        assert all(map(np.array_equal, arguments, before))
        assert returned == expected
        for column in arguments:
            column[...] = True if column.dtype == bool else -7.0


def test_the_discount_is_zero_after_a_termination_but_not_after_a_truncation():
    no, yes = np.array([False]), np.array([True])
    one = np.ones((1, 1))
    for steps in (1, 4):
        truncated = NStepBuffer(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, no, yes)
        terminated = NStepBuffer(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, yes, no)
        both = NStepBuffer(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, yes, yes)
        cases = (truncated, terminated, both)
        assert [case.discounts.tolist() for case in cases] == [[0.5], [0.0], [0.0]]
        assert [case.rewards.tolist() for case in cases] == [[3.0]] * 3


def test_observations_and_actions_of_several_elements_are_supported():
    rng = np.random.default_rng(0)
    buffer = NStepBuffer(2, 0.5)
    steps = [(rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), rng.normal(size=3)) for _ in "ab"]
    no, after = np.zeros(3, bool), rng.normal(size=(3, 4))
    assert len(buffer.add(*steps[0], after, no, no).rewards) == 0
    transitions = buffer.add(*steps[1], after, no, no)
    assert np.array_equal(transitions.observations, steps[0][0])
    assert np.array_equal(transitions.actions, steps[0][1])
    np.testing.assert_allclose(transitions.rewards, steps[0][2] + 0.5 * steps[1][2])
    assert np.array_equal(transitions.next_observations, after)
    assert transitions.discounts.tolist() == [0.25] * 3
