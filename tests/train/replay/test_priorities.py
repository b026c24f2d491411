"""Priorities: places are drawn as often as their weights say, whatever was put in before."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._replay import Priorities

CPU = torch.device("cpu")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def weights(priorities, capacity):
    return priorities.state()["weights"][:capacity].numpy()


def sums_hold(priorities):
    sums = priorities._sums
    half = len(sums) // 2
    return torch.equal(sums[1:half], sums[2 : 2 * half : 2] + sums[3 : 2 * half : 2])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("capacity", [1, 2, 5, 8, 100])
def test_places_are_drawn_in_proportion_to_their_weights(capacity, alpha):
    priorities = Priorities(capacity, CPU, alpha)
    priorities.add(np.arange(capacity))
    errors = torch.rand(capacity, generator=generator(1)) * 5
    priorities.update(torch.arange(capacity), errors)
    expected = (errors.double().numpy() + 1e-6) ** alpha
    expected /= expected.sum()
    drawn, likely = priorities.draw(50_000, generator())
    found = np.bincount(drawn.numpy(), minlength=capacity) / 50_000
    np.testing.assert_allclose(found, expected, atol=0.003)
    np.testing.assert_allclose(likely.numpy(), expected[drawn.numpy()], rtol=1e-6)


def test_a_batch_has_one_of_each_equal_share():
    """So a place with a quarter of all weight is in a batch of eight at least once, and most often
    twice."""
    priorities = Priorities(4, CPU, 1.0)
    priorities.add(np.arange(4))
    for seed in range(50):
        drawn, _ = priorities.draw(8, generator(seed))
        assert np.bincount(drawn, minlength=4).tolist() == [2, 2, 2, 2]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 20),
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 19), st.floats(-1e3, 1e3, width=32)), min_size=1, max_size=12
        ),
        max_size=8,
    ),
)
def test_sums_hold_after_any_updates(capacity, rounds):
    """Also where a place is updated twice at once; which of the two counts is not said."""
    priorities = Priorities(capacity, CPU, 0.6)
    priorities.add(np.arange(capacity))
    for updates in rounds:
        places = torch.tensor([place % capacity for place, _ in updates])
        errors = torch.tensor([error for _, error in updates])
        before = weights(priorities, capacity).copy()
        priorities.update(places, errors)
        after = weights(priorities, capacity)
        possible = {place: set() for place in places.tolist()}
        for place, error in zip(places.tolist(), errors.tolist(), strict=True):
            possible[place].add((abs(error) + 1e-6) ** 0.6)
        for place in range(capacity):
            if place in possible:
                assert any(after[place] == pytest.approx(one) for one in possible[place])
            else:
                assert after[place] == before[place]
        assert sums_hold(priorities)
        drawn, likely = priorities.draw(30, generator())
        assert 0 <= drawn.min() <= drawn.max() < capacity
        np.testing.assert_allclose(likely, after[drawn.numpy()] / after.sum(), rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 40),
    st.sets(st.integers(0, 39), min_size=1),
    st.lists(st.floats(0, 1e9, width=32), min_size=40, max_size=40),
    st.integers(0, 100),
)
def test_only_what_is_there_is_drawn(capacity, present, errors, seed):
    """Whatever rounding says, and however different weights are."""
    places = np.array(sorted({place % capacity for place in present}))
    priorities = Priorities(capacity, CPU, 1.0)
    priorities.add(places)
    priorities.update(torch.as_tensor(places), torch.tensor(errors[: len(places)]))
    drawn, likely = priorities.draw(200, generator(seed))
    assert set(drawn.tolist()) <= set(places.tolist())
    assert bool((likely > 0).all())


@pytest.mark.parametrize("share", [0.0, float(np.nextafter(1.0, 0.0))])
def test_the_extreme_draws_are_places(share, monkeypatch):
    priorities = Priorities(11, CPU, 1.0)
    priorities.add(np.array([2, 3, 9]))
    priorities.update(torch.tensor([2, 3, 9]), torch.tensor([0.1, 0.2, 0.3]))
    monkeypatch.setattr(torch, "rand", lambda n, **_: torch.full((n,), share, dtype=torch.float64))
    drawn, _ = priorities.draw(7, generator())
    assert set(drawn.tolist()) <= {2, 3, 9}
    assert drawn[0 if share == 0.0 else -1] == (2 if share == 0.0 else 9)


def test_what_is_new_is_as_important_as_anything_has_been():
    priorities = Priorities(4, CPU, 1.0)
    priorities.add(np.array([0, 1]))
    assert weights(priorities, 4).tolist() == [1.0, 1.0, 0.0, 0.0]
    priorities.update(torch.tensor([0, 1]), torch.tensor([7.0, -0.5]))
    priorities.update(torch.tensor([0]), torch.tensor([0.25]))
    priorities.add(np.array([2]))
    np.testing.assert_allclose(weights(priorities, 4), [0.25, 0.5, 7.0, 0.0], rtol=1e-5)


def test_what_takes_an_old_place_has_its_own_weight():
    priorities = Priorities(3, CPU, 1.0)
    priorities.add(np.arange(3))
    priorities.update(torch.arange(3), torch.tensor([0.1, 0.2, 0.3]))
    priorities.add(np.array([1]))
    np.testing.assert_allclose(weights(priorities, 3), [0.1, 1.0, 0.3], rtol=1e-4)
    assert sums_hold(priorities)


def test_after_clearing_only_what_is_added_is_drawn():
    priorities = Priorities(8, CPU, 0.5)
    priorities.add(np.arange(8))
    priorities.clear()
    priorities.add(np.array([3]))
    drawn, likely = priorities.draw(20, generator())
    assert set(drawn.tolist()) == {3}
    assert set(likely.tolist()) == {1.0}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 33), st.integers(0, 2**31), st.integers(0, 5))
def test_priorities_are_restored_exactly(capacity, seed, updates):
    rng = np.random.default_rng(seed)
    one, other = Priorities(capacity, CPU, 0.7), Priorities(capacity, CPU, 0.7)
    other.add(np.arange(capacity))
    other.update(torch.arange(capacity), torch.full((capacity,), 99.0))
    one.add(np.arange(rng.integers(1, capacity + 1)))

    def disturb(priorities, random):
        places = random.integers(0, capacity, 5)
        priorities.update(torch.as_tensor(places), torch.as_tensor(random.normal(0, 9, 5)))
        priorities.add(random.permutation(capacity)[:2])

    for _ in range(updates):
        disturb(one, rng)
    other.restore({name: value.clone() for name, value in one.state().items()})
    assert torch.equal(one._sums, other._sums)
    for number in range(3):
        assert all(map(torch.equal, one.draw(9, generator(1)), other.draw(9, generator(1))))
        disturb(one, np.random.default_rng(number))
        disturb(other, np.random.default_rng(number))
    assert torch.equal(one._sums, other._sums)
