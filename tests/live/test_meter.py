"""``Meter`` agrees with a slow implementation that handles each slot separately."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal._native import Autoreset, Meter

MODES = [Autoreset.NEXT_STEP, Autoreset.SAME_STEP, Autoreset.DISABLED]


class PlainMeter:
    """A reference implementation of ``Meter``."""

    def __init__(self, num_envs, mode):
        self.mode = mode
        self.totals = [[0.0, 0] for _ in range(num_envs)]
        self.finished = [False] * num_envs
        self.ended = []

    def step(self, slots, rewards, ends):
        for slot, reward, end in zip(slots, rewards, ends, strict=True):
            if self.finished[slot] and self.mode is Autoreset.NEXT_STEP:
                self.totals[slot] = [0.0, 0]  # this step is the reset
            else:
                self.totals[slot][0] += reward
                self.totals[slot][1] += 1
            self.finished[slot] = end
            if end:
                self.ended.append((slot, *self.totals[slot]))
                self.totals[slot] = [0.0, 0]

    def reset(self, slots):
        for slot in slots:
            self.totals[slot], self.finished[slot] = [0.0, 0], False


@given(st.data(), st.sampled_from(MODES), st.integers(1, 20))
def test_counts_and_episodes_equal_the_reference(data, mode, num_envs):
    meter, plain = Meter(num_envs, mode, 60.0), PlainMeter(num_envs, mode)
    steps = batches = 0
    some = st.lists(st.integers(0, num_envs - 1), unique=True)
    for _ in range(data.draw(st.integers(1, 12))):
        operation = data.draw(st.sampled_from(["step", "some", "reset"]))
        slots = np.array(data.draw(some), np.int64)
        if operation == "reset":
            meter.reset(slots)
            plain.reset(slots.tolist())
            continue
        if operation == "step":
            slots = np.arange(num_envs)
        count = len(slots)
        flags = st.lists(st.booleans(), min_size=count, max_size=count)
        terminated, truncated = (np.array(data.draw(flags), np.bool_) for _ in range(2))
        ends = terminated | truncated
        # In next-step mode, a reset has no reward and does not end an episode.
        resets = np.array([plain.finished[slot] for slot in slots], np.bool_)
        resets &= mode is Autoreset.NEXT_STEP
        terminated[resets] = truncated[resets] = ends[resets] = False
        rewards = np.where(resets, 0.0, np.arange(count) + 0.5)
        meter.begin()
        if operation == "step":
            meter.end(rewards, terminated, truncated)
        else:
            meter.end_some(slots, rewards, terminated, truncated)
        plain.step(slots.tolist(), rewards.tolist(), ends.tolist())
        steps, batches = steps + count, batches + 1
    assert (meter.steps, meter.batches, meter.episodes) == (steps, batches, len(plain.ended))
    assert sum(meter.times) == batches
    assert sorted(meter.take_ended()) == sorted(plain.ended)
    assert meter.take_ended() == []


def test_all_episodes_are_counted_but_returns_only_of_the_first_128_slots():
    meter = Meter(5000, Autoreset.SAME_STEP, 60.0)
    ones, none = np.ones(5000), np.zeros(5000, np.bool_)
    some = np.arange(5000) % 7 == 0
    meter.begin()
    meter.end(ones, none, none)
    meter.end(ones, some, none)
    assert meter.episodes == some.sum()
    assert meter.take_ended() == [(slot, 2.0, 2) for slot in range(0, 128, 7)]


def test_the_newest_4096_episodes_are_kept():
    meter = Meter(8, Autoreset.SAME_STEP, 60.0)
    every = np.ones(8, np.bool_)
    for number in range(1000):
        meter.end(np.full(8, float(number)), every, every)
    ended = meter.take_ended()
    assert len(ended) == 4096
    assert [total for _, total, _ in ended] == sorted(total for _, total, _ in ended)
    assert ended[-1] == (7, 999.0, 1)


def test_end_returns_whether_the_interval_has_passed():
    flags = np.zeros(1, np.bool_)
    never, always = Meter(1, Autoreset.DISABLED, 60.0), Meter(1, Autoreset.DISABLED, 0.0)
    for _ in range(3):
        assert not never.end(np.zeros(1), flags, flags)
        assert always.end(np.zeros(1), flags, flags)


def test_edges_cover_all_batch_times():
    edges = Meter.edges
    assert len(edges) == len(Meter(1, Autoreset.DISABLED, 1.0).times) + 1
    assert edges == sorted(edges)
    assert edges[0] <= 1e-7
    assert edges[-1] >= 100


@pytest.mark.parametrize(
    ("rewards", "flags"),
    [
        (np.zeros(3), np.zeros(2, np.bool_)),
        (np.zeros(2, np.float32), np.zeros(2, np.bool_)),
        (np.zeros(2), np.zeros(2, np.int8)),
        (np.zeros((2, 1)), np.zeros(2, np.bool_)),
        (np.zeros(4)[::2], np.zeros(2, np.bool_)),
        ([0.0, 0.0], [False, False]),
    ],
)
def test_invalid_batches_raise_and_are_not_counted(rewards, flags):
    meter = Meter(2, Autoreset.SAME_STEP, 1.0)
    with pytest.raises(TypeError, match="must be a contiguous array"):
        meter.end(rewards, flags, flags)
    assert meter.steps == meter.episodes == meter.batches == 0


def test_zero_slots_are_an_error():
    with pytest.raises(ValueError, match="slots"):
        Meter(0, Autoreset.SAME_STEP, 1.0)
