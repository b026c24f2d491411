"""Statistical tests of the counter-based generator."""

import numpy as np
import pytest
from scipy import stats

import shoal

# The seeds are fixed, so each test is deterministic.
LEAST = 1e-4


def first_states(seed, count=20_000):
    with shoal.make("CartPole-v1", count, seeding="counter") as envs:
        envs.reset(seed=seed)
        return np.stack([envs.state[name].copy() for name in envs.state.dtype.names], axis=1)


@pytest.mark.parametrize("seed", [0, 12345, 2**40])
def test_draws_are_uniform_and_uncorrelated(seed):
    states = (first_states(seed) + 0.05) / 0.1
    for column in states.T:
        assert stats.kstest(column, "uniform").pvalue > LEAST
    # Neither consecutive draws of a slot nor draws of adjacent slots are correlated.
    pairs = [(states[:, a], states[:, b]) for a in range(4) for b in range(a)]
    pairs += [(states[:-1, a], states[1:, a]) for a in range(4)]
    for one, other in pairs:
        assert stats.pearsonr(one, other).pvalue > LEAST
        table = np.histogram2d(one, other, bins=16, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(table.ravel()).pvalue > LEAST


def test_all_bits_are_fair():
    states = (first_states(3) + 0.05) / 0.1
    bits = (states.ravel() * 2**53).astype(np.uint64)
    for position in range(20, 53):
        ones = int((bits >> np.uint64(position) & np.uint64(1)).sum())
        assert stats.binomtest(ones, bits.size).pvalue > LEAST


def test_adjacent_seeds_share_only_shifted_slots():
    one, other = first_states(1, 5000), first_states(2, 5000)
    # Slot k of one vector has the seed of slot k - 1 of the other; nothing else repeats.
    assert np.array_equal(one[1:], other[:-1])
    assert len(np.unique(one)) == one.size


def test_streams_do_not_repeat():
    with shoal.make("CartPole-v1", 50, seeding="counter") as envs:
        seen = []
        envs.reset(seed=0)
        for _ in range(400):
            seen.append(envs.reset()[0])
        assert len(np.unique(np.concatenate(seen), axis=0)) == 50 * 400


@pytest.mark.parametrize("name", ["Blackjack-v1", "FrozenLake-v1"])
def test_episode_returns_match_those_of_pcg64(name):
    def returns(seeding):
        count, found = 2000, []
        with shoal.make(name, count, seeding=seeding, statistics=True) as envs:
            envs.reset(seed=5)
            rng = np.random.default_rng(0)
            for _ in range(60):
                infos = envs.step(rng.integers(0, envs.single_action_space.n, count))[4]
                if "episode" in infos:
                    found.append(infos["episode"]["r"][infos["_episode"]])
        return np.concatenate(found)

    one, other = returns("adjacent"), returns("counter")
    values = np.unique(np.concatenate([one, other]))
    table = [[(column == value).sum() for value in values] for column in (one, other)]
    assert stats.chi2_contingency(table).pvalue > LEAST


def test_dice_are_fair():
    with shoal.make("Blackjack-v1", 30_000, seeding="counter") as envs:
        envs.reset(seed=8)
        cards = np.bincount(envs.state["shown"], minlength=11)[1:]
    expected = np.array([1] * 9 + [4]) / 13 * 30_000
    assert stats.chisquare(cards, expected).pvalue > LEAST


def test_np_random_is_not_available():
    with shoal.make("CartPole-v1", 2, seeding="counter") as envs:
        envs.reset(seed=0)
        with pytest.raises(NotImplementedError, match="seeding='counter'"):
            envs.np_random  # noqa: B018
