"""Exploration noise: its scale, its spectrum, and the independence of slots."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._agents.noise import NormalNoise, PinkNoise, make_noise

CPU = torch.device("cpu")


def pink(slots, size=1, period=256, seed=0):
    return PinkNoise(slots, size, CPU, torch.Generator().manual_seed(seed), period)


def sample(noise, steps):
    """Return the noise of some steps, of the shape (steps, slots, size)."""
    return np.array([noise.sample().numpy() for _ in range(steps)])


def test_normal_noise_is_white():
    noise = make_noise("normal", 64, 2, CPU, torch.Generator().manual_seed(0), 256)
    assert isinstance(noise, NormalNoise)
    samples = sample(noise, 256)
    assert samples.std() == pytest.approx(1.0, abs=0.02)
    assert abs((samples[1:] * samples[:-1]).mean()) < 0.02


def test_pink_noise_has_unit_variance():
    samples = sample(pink(300, 3), 512)
    assert samples.shape == (512, 300, 3)
    assert abs(samples.mean()) < 0.05
    assert samples.std() == pytest.approx(1.0, abs=0.03)
    # At every step of a sequence, not only on average.
    assert samples.std(axis=(1, 2)) == pytest.approx(np.ones(512), abs=0.15)


def test_the_power_of_pink_noise_is_inversely_proportional_to_the_frequency():
    samples = sample(pink(300, 2), 256)
    power = (np.abs(np.fft.rfft(samples, axis=0)) ** 2).mean(axis=(1, 2))[1:-1]
    slope = np.polyfit(np.log(np.arange(1, 128)), np.log(power), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.05)


def test_pink_noise_is_normally_distributed():
    samples = sample(pink(3000), 1).ravel()
    for bound, share in [(-1.0, 0.1587), (0.0, 0.5), (1.0, 0.8413), (2.0, 0.9772)]:
        assert (samples < bound).mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("period", [2, 3, 4, 5, 16, 255])
def test_pink_noise_has_unit_variance_at_each_step_of_any_period(period):
    samples = sample(pink(4000 if period < 50 else 1000, period=period), period)
    assert samples.std(axis=(1, 2)) == pytest.approx(np.ones(period), abs=0.1)


@pytest.mark.parametrize("period", [2, 7, 64])
def test_a_new_sequence_follows_the_last_one(period):
    """Each number of a sequence is used once."""
    noise = pink(2, period=period)
    first = sample(noise, period)
    sequence = noise.state()["sequences"].clone()
    np.testing.assert_array_equal(first[:, :, 0], sequence[:, 0].T)
    second = sample(noise, period)
    assert not np.isin(first, second).any()
    assert len(sample(noise, 3 * period + 1)) == 3 * period + 1


def test_slots_and_action_elements_are_independent():
    samples = sample(pink(20, 5, period=512), 512 * 4).reshape(2048, 100)
    # Sample correlations of coloured noise vary widely, but must be zero on average.
    table = np.corrcoef(samples.T)[~np.eye(100, dtype=bool)]
    assert abs(table.mean()) < 0.02
    assert table.max() < 0.8


def test_reset_starts_a_new_sequence_in_the_selected_slot_only():
    steady, restarted = pink(3, 2, period=32, seed=5), pink(3, 2, period=32, seed=5)
    assert np.array_equal(sample(steady, 10), sample(restarted, 10))
    restarted.reset(np.array([False, True, False]))
    one, other = sample(steady, 22), sample(restarted, 22)
    assert np.array_equal(one[:, [0, 2]], other[:, [0, 2]])
    assert not np.isin(one[:, 1], other[:, 1]).any()
    # The new sequence has the full period: it continues when those of the other slots end.
    before = restarted.state()["sequences"][1].clone()
    sample(restarted, 10)
    assert torch.equal(before, restarted.state()["sequences"][1])
    sample(restarted, 1)
    assert not torch.equal(before, restarted.state()["sequences"][1])


def test_reset_without_ended_episodes_changes_nothing():
    steady, other = pink(3), pink(3)
    sample(steady, 5), sample(other, 5)
    other.reset(np.zeros(3, bool))
    assert np.array_equal(sample(steady, 300), sample(other, 300))


def test_returned_noise_is_not_overwritten_later():
    noise = pink(4)
    first = noise.sample()
    before = first.clone()
    sample(noise, 300)
    assert torch.equal(first, before)


@settings(max_examples=40, deadline=None)
@given(
    period=st.integers(2, 9),
    before=st.integers(0, 25),
    ends=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=20),
)
def test_restored_noise_continues_exactly(period, before, ends):
    noise, other = pink(3, 2, period, seed=1), pink(3, 2, period, seed=2)
    sample(noise, before)
    sample(other, 1)
    other.restore({name: value.clone() for name, value in noise.state().items()})
    other._generator.set_state(noise._generator.get_state())
    for ended in ends:
        for each in (noise, other):
            each.reset(np.array(ended))
        assert torch.equal(noise.sample(), other.sample())
