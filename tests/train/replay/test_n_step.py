"""Rewards of several steps, next to a search through each slot's whole history."""

import copy
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._replay import NStep

GAMMA = 0.9


class Event(NamedTuple):
    """A step of one slot; what it saw and did are numbers that nothing else has."""

    observation: float
    action: float
    reward: float
    next_observation: float
    terminated: bool
    truncated: bool


def oracle(history, steps, gamma):
    """What is complete after this history of one slot: by the number of its first step."""
    found = {}
    for begin, first in enumerate(history):
        total, weight = 0.0, 1.0
        for length, event in enumerate(history[begin : begin + steps], start=1):
            total += weight * event.reward
            weight *= gamma
            ended = event.terminated or event.truncated
            if ended or length == steps:
                discount = 0.0 if event.terminated else weight
                row = (first.observation, first.action, total, event.next_observation, discount)
                found[begin] = row
                break
    return found


def histories(ends, rewards, slots):
    """Steps of all slots; each slot's observations count up, and are new in each episode."""
    found = []
    counter = 0
    seen = [1000.0 * slot for slot in range(slots)]
    for now_ends, now_rewards in zip(ends, rewards, strict=True):
        row = []
        for slot in range(slots):
            counter += 1
            terminated, truncated = now_ends[slot]
            after = 1000.0 * slot + counter
            row.append(
                Event(seen[slot], float(counter), now_rewards[slot], after, terminated, truncated)
            )
            # A new episode begins somewhere else.
            seen[slot] = after + 0.5 if terminated or truncated else after
        found.append(row)
    return found


def add(gather, row):
    columns = [np.array(column) for column in zip(*row, strict=True)]
    return gather.add(
        columns[0][:, None], columns[1], columns[2], columns[3][:, None], columns[4], columns[5]
    )


def rows_of(found):
    return [
        (float(o[0]), float(a), pytest.approx(float(r)), float(n[0]), pytest.approx(float(d)))
        for o, a, r, n, d in zip(*found, strict=True)
    ]


@st.composite
def runs(draw):
    slots = draw(st.integers(1, 4))
    length = draw(st.integers(1, 14))
    likely = draw(st.sampled_from([0, 1, 3]))
    end = st.sampled_from(
        [(False, False)] * 4 + [(True, False), (False, True), (True, True)] * likely
    )
    ends = draw(st.lists(st.tuples(*[end] * slots), min_size=length, max_size=length))
    numbers = st.integers(-8, 8).map(float)
    rewards = draw(st.lists(st.tuples(*[numbers] * slots), min_size=length, max_size=length))
    return histories(ends, rewards, slots)


@settings(max_examples=200, deadline=None)
@given(runs(), st.integers(1, 5), st.sampled_from([0.0, GAMMA, 1.0]))
def test_every_transition_is_given_out_once_when_it_is_complete(run, steps, gamma):
    gather, slots = NStep(steps, gamma), len(run[0])
    known = [{} for _ in range(slots)]
    for number, row in enumerate(run):
        found = rows_of(add(gather, row))
        expected = []
        for slot in range(slots):
            now = oracle([past[slot] for past in run[: number + 1]], steps, gamma)
            expected += [now[begin] for begin in now.keys() - known[slot].keys()]
            known[slot] = now
        assert sorted(found, key=lambda row: row[1]) == sorted(expected, key=lambda row: row[1])
    # Whatever is not complete yet belongs to the last steps of an episode that goes on.
    for slot in range(slots):
        missing = set(range(len(run))) - known[slot].keys()
        assert len(missing) < steps
        assert missing == set(range(len(run) - len(missing), len(run)))


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 5), st.data())
def test_what_is_not_complete_is_restored(run, steps, data):
    cut = data.draw(st.integers(0, len(run)))
    one, other = NStep(steps, GAMMA), NStep(steps, GAMMA)
    for row in run[:cut]:
        add(one, row)
    add(other, run[0])
    other.restore(copy.deepcopy(one.state()))
    for row in run[cut:]:
        assert all(map(np.array_equal, add(one, row), add(other, row)))


def test_a_state_serves_twice_and_is_not_written_to():
    run = histories([[(False, False)]] * 6, [[1.0]] * 6, 1)
    gather = NStep(3, GAMMA)
    for row in run[:1]:
        add(gather, row)
    state = gather.state()
    before = copy.deepcopy(state)
    others = [NStep(3, GAMMA), NStep(3, GAMMA)]
    for other in others:
        other.restore(state)
    for row in run[1:]:
        expected = rows_of(add(gather, row))
        assert [rows_of(add(other, row)) for other in others] == [expected, expected]
    assert state["lengths"].tolist() == before["lengths"].tolist()
    assert len(state["recent"]) == len(before["recent"])


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(1, 5), st.data())
def test_what_was_forgotten_never_comes(run, steps, data):
    """After a cut it is as if nothing had been before."""
    cut = data.draw(st.integers(0, len(run)))
    one, fresh = NStep(steps, GAMMA), NStep(steps, GAMMA)
    for row in run[:cut]:
        add(one, row)
    one.forget()
    for row in run[cut:]:
        assert rows_of(add(one, row)) == rows_of(add(fresh, row))


@pytest.mark.parametrize("steps", [1, 3])
def test_nothing_given_in_is_changed_or_kept(steps):
    """Vectors write to the same arrays again, and rewards are scaled in place by some."""
    run = histories([[(False, False), (False, True)]] * 4, [[1.0, 2.0]] * 4, 2)
    plain, reused = NStep(steps, GAMMA), NStep(steps, GAMMA)
    for row in run:
        expected = rows_of(add(plain, row))
        columns = [np.array(column) for column in zip(*row, strict=True)]
        given = [columns[0][:, None], columns[1], columns[2], columns[3][:, None], *columns[4:]]
        before = [column.copy() for column in given]
        found = rows_of(reused.add(*given))
        assert all(map(np.array_equal, given, before))
        assert found == expected
        for column in given:
            column[...] = True if column.dtype == bool else -7.0


def test_a_truncated_episode_has_a_value_after_its_end_and_a_terminated_one_has_none():
    no, yes = np.array([False]), np.array([True])
    one = np.ones((1, 1))
    for steps in (1, 4):
        cut = NStep(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, no, yes)
        over = NStep(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, yes, no)
        both = NStep(steps, 0.5).add(one, one, np.array([3.0]), 2 * one, yes, yes)
        assert [each.discounts.tolist() for each in (cut, over, both)] == [[0.5], [0.0], [0.0]]
        assert [each.rewards.tolist() for each in (cut, over, both)] == [[3.0]] * 3


def test_several_numbers_of_actions_and_observations_stay_together():
    rng = np.random.default_rng(0)
    gather = NStep(2, 0.5)
    steps = [(rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), rng.normal(size=3)) for _ in "ab"]
    no, later = np.zeros(3, bool), rng.normal(size=(3, 4))
    assert len(gather.add(*steps[0], later, no, no).rewards) == 0
    found = gather.add(*steps[1], later, no, no)
    assert np.array_equal(found.observations, steps[0][0])
    assert np.array_equal(found.actions, steps[0][1])
    np.testing.assert_allclose(found.rewards, steps[0][2] + 0.5 * steps[1][2])
    assert np.array_equal(found.next_observations, later)
    assert found.discounts.tolist() == [0.25] * 3
