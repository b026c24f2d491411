"""Noise of exploration: how strong it is, how it is coloured, and that slots have their own."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._agents.noise import NormalNoise, PinkNoise, make_noise

CPU = torch.device("cpu")


def pink(slots, size=1, period=256, seed=0):
    return PinkNoise(slots, size, CPU, torch.Generator().manual_seed(seed), period)


def drawn(noise, steps):
    """(steps, slots, size)"""
    return np.array([noise.draw().numpy() for _ in range(steps)])


def test_normal_noise_is_white():
    noise = make_noise("normal", 64, 2, CPU, torch.Generator().manual_seed(0), 256)
    assert isinstance(noise, NormalNoise)
    found = drawn(noise, 256)
    assert found.std() == pytest.approx(1.0, abs=0.02)
    assert abs((found[1:] * found[:-1]).mean()) < 0.02


def test_pink_noise_has_a_deviation_of_one():
    found = drawn(pink(300, 3), 512)
    assert found.shape == (512, 300, 3)
    assert abs(found.mean()) < 0.05
    assert found.std() == pytest.approx(1.0, abs=0.03)
    # At every step of a sequence, and not only on average.
    assert found.std(axis=(1, 2)) == pytest.approx(np.ones(512), abs=0.15)


def test_the_power_of_pink_noise_falls_with_the_frequency():
    found = drawn(pink(300, 2), 256)
    power = (np.abs(np.fft.rfft(found, axis=0)) ** 2).mean(axis=(1, 2))[1:-1]
    slope = np.polyfit(np.log(np.arange(1, 128)), np.log(power), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.05)


def test_pink_noise_is_normally_distributed():
    found = drawn(pink(3000), 1).ravel()
    for bound, share in [(-1.0, 0.1587), (0.0, 0.5), (1.0, 0.8413), (2.0, 0.9772)]:
        assert (found < bound).mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("period", [2, 3, 4, 5, 16, 255])
def test_any_period_has_a_deviation_of_one_at_each_of_its_steps(period):
    found = drawn(pink(4000 if period < 50 else 1000, period=period), period)
    assert found.std(axis=(1, 2)) == pytest.approx(np.ones(period), abs=0.1)


@pytest.mark.parametrize("period", [2, 7, 64])
def test_sequences_follow_each_other(period):
    """Every number of a sequence is used once, and then another sequence begins."""
    noise = pink(2, period=period)
    first = drawn(noise, period)
    sequence = noise.state()["sequences"].clone()
    np.testing.assert_array_equal(first[:, :, 0], sequence[:, 0].T)
    second = drawn(noise, period)
    assert not np.isin(first, second).any()
    assert len(drawn(noise, 3 * period + 1)) == 3 * period + 1


def test_slots_and_numbers_are_independent():
    found = drawn(pink(20, 5, period=512), 512 * 4).reshape(2048, 100)
    # Correlations of coloured sequences are wide: what counts is that there is none on average.
    table = np.corrcoef(found.T)[~np.eye(100, dtype=bool)]
    assert abs(table.mean()) < 0.02
    assert table.max() < 0.8


def test_an_end_begins_a_new_sequence_in_its_slot_only():
    steady, restarted = pink(3, 2, period=32, seed=5), pink(3, 2, period=32, seed=5)
    assert np.array_equal(drawn(steady, 10), drawn(restarted, 10))
    restarted.begin(np.array([False, True, False]))
    one, other = drawn(steady, 22), drawn(restarted, 22)
    assert np.array_equal(one[:, [0, 2]], other[:, [0, 2]])
    assert not np.isin(one[:, 1], other[:, 1]).any()
    # Its new sequence is a whole one: it goes on where the others begin anew.
    before = restarted.state()["sequences"][1].clone()
    drawn(restarted, 10)
    assert torch.equal(before, restarted.state()["sequences"][1])
    drawn(restarted, 1)
    assert not torch.equal(before, restarted.state()["sequences"][1])


def test_nothing_begins_where_nothing_has_ended():
    steady, asked = pink(3), pink(3)
    drawn(steady, 5), drawn(asked, 5)
    asked.begin(np.zeros(3, bool))
    assert np.array_equal(drawn(steady, 300), drawn(asked, 300))


def test_what_was_drawn_stays_what_it_was():
    noise = pink(4)
    first = noise.draw()
    before = first.clone()
    drawn(noise, 300)
    assert torch.equal(first, before)


@settings(max_examples=40, deadline=None)
@given(
    period=st.integers(2, 9),
    before=st.integers(0, 25),
    ends=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=20),
)
def test_noise_is_restored_exactly(period, before, ends):
    noise, other = pink(3, 2, period, seed=1), pink(3, 2, period, seed=2)
    drawn(noise, before)
    drawn(other, 1)
    other.restore({name: value.clone() for name, value in noise.state().items()})
    other._generator.set_state(noise._generator.get_state())
    for ended in ends:
        for each in (noise, other):
            each.begin(np.array(ended))
        assert torch.equal(noise.draw(), other.draw())
