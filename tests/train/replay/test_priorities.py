"""The priorities of prioritized replay: sampling in proportion to weights."""

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


def tree_is_consistent(priorities):
    sums = priorities._sums
    half = len(sums) // 2
    return torch.equal(sums[1:half], sums[2 : 2 * half : 2] + sums[3 : 2 * half : 2])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("capacity", [1, 2, 5, 8, 100])
def test_indices_are_sampled_in_proportion_to_their_weights(capacity, alpha):
    priorities = Priorities(capacity, CPU, alpha)
    priorities.add(np.arange(capacity))
    errors = torch.rand(capacity, generator=generator(1)) * 5
    priorities.update(torch.arange(capacity), errors)
    expected = (errors.double().numpy() + 1e-6) ** alpha
    expected /= expected.sum()
    indices, probabilities = priorities.sample(50_000, generator())
    frequencies = np.bincount(indices.numpy(), minlength=capacity) / 50_000
    np.testing.assert_allclose(frequencies, expected, atol=0.003)
    np.testing.assert_allclose(probabilities.numpy(), expected[indices.numpy()], rtol=1e-6)


def test_sampling_is_stratified():
    """With four equal weights, each index occurs exactly twice in a batch of eight."""
    priorities = Priorities(4, CPU, 1.0)
    priorities.add(np.arange(4))
    for seed in range(50):
        indices, _ = priorities.sample(8, generator(seed))
        assert np.bincount(indices, minlength=4).tolist() == [2, 2, 2, 2]


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
def test_the_tree_is_consistent_after_any_updates(capacity, rounds):
    """If an update has an index twice, either of the two weights may be kept."""
    priorities = Priorities(capacity, CPU, 0.6)
    priorities.add(np.arange(capacity))
    for updates in rounds:
        indices = torch.tensor([index % capacity for index, _ in updates])
        errors = torch.tensor([error for _, error in updates])
        before = weights(priorities, capacity).copy()
        priorities.update(indices, errors)
        after = weights(priorities, capacity)
        possible = {index: set() for index in indices.tolist()}
        for index, error in zip(indices.tolist(), errors.tolist(), strict=True):
            possible[index].add((abs(error) + 1e-6) ** 0.6)
        for index in range(capacity):
            if index in possible:
                assert any(after[index] == pytest.approx(weight) for weight in possible[index])
            else:
                assert after[index] == before[index]
        assert tree_is_consistent(priorities)
        sampled, probabilities = priorities.sample(30, generator())
        assert 0 <= sampled.min() <= sampled.max() < capacity
        np.testing.assert_allclose(probabilities, after[sampled.numpy()] / after.sum(), rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 40),
    st.sets(st.integers(0, 39), min_size=1),
    st.lists(st.floats(0, 1e9, width=32), min_size=40, max_size=40),
    st.integers(0, 100),
)
def test_indices_without_weight_are_never_sampled(capacity, present, errors, seed):
    """Also if weights differ by many orders of magnitude, in spite of rounding."""
    indices = np.array(sorted({index % capacity for index in present}))
    priorities = Priorities(capacity, CPU, 1.0)
    priorities.add(indices)
    priorities.update(torch.as_tensor(indices), torch.tensor(errors[: len(indices)]))
    sampled, probabilities = priorities.sample(200, generator(seed))
    assert set(sampled.tolist()) <= set(indices.tolist())
    assert bool((probabilities > 0).all())


@pytest.mark.parametrize("uniform", [0.0, float(np.nextafter(1.0, 0.0))])
def test_the_extreme_random_numbers_give_valid_indices(uniform, monkeypatch):
    priorities = Priorities(11, CPU, 1.0)
    priorities.add(np.array([2, 3, 9]))
    priorities.update(torch.tensor([2, 3, 9]), torch.tensor([0.1, 0.2, 0.3]))
    monkeypatch.setattr(
        torch, "rand", lambda n, **_: torch.full((n,), uniform, dtype=torch.float64)
    )
    indices, _ = priorities.sample(7, generator())
    assert set(indices.tolist()) <= {2, 3, 9}
    assert indices[0 if uniform == 0.0 else -1] == (2 if uniform == 0.0 else 9)


def test_new_transitions_get_the_largest_weight_so_far():
    priorities = Priorities(4, CPU, 1.0)
    priorities.add(np.array([0, 1]))
    assert weights(priorities, 4).tolist() == [1.0, 1.0, 0.0, 0.0]
    priorities.update(torch.tensor([0, 1]), torch.tensor([7.0, -0.5]))
    priorities.update(torch.tensor([0]), torch.tensor([0.25]))
    priorities.add(np.array([2]))
    np.testing.assert_allclose(weights(priorities, 4), [0.25, 0.5, 7.0, 0.0], rtol=1e-5)


def test_an_overwritten_transition_gets_a_new_weight():
    priorities = Priorities(3, CPU, 1.0)
    priorities.add(np.arange(3))
    priorities.update(torch.arange(3), torch.tensor([0.1, 0.2, 0.3]))
    priorities.add(np.array([1]))
    np.testing.assert_allclose(weights(priorities, 3), [0.1, 1.0, 0.3], rtol=1e-4)
    assert tree_is_consistent(priorities)


def test_after_clear_only_new_transitions_are_sampled():
    priorities = Priorities(8, CPU, 0.5)
    priorities.add(np.arange(8))
    priorities.clear()
    priorities.add(np.array([3]))
    indices, probabilities = priorities.sample(20, generator())
    assert set(indices.tolist()) == {3}
    assert set(probabilities.tolist()) == {1.0}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 33), st.integers(0, 2**31), st.integers(0, 5))
def test_priorities_are_restored_exactly(capacity, seed, updates):
    rng = np.random.default_rng(seed)
    one, other = Priorities(capacity, CPU, 0.7), Priorities(capacity, CPU, 0.7)
    other.add(np.arange(capacity))
    other.update(torch.arange(capacity), torch.full((capacity,), 99.0))
    one.add(np.arange(rng.integers(1, capacity + 1)))

    def update_randomly(priorities, random):
        indices = random.integers(0, capacity, 5)
        priorities.update(torch.as_tensor(indices), torch.as_tensor(random.normal(0, 9, 5)))
        priorities.add(random.permutation(capacity)[:2])

    for _ in range(updates):
        update_randomly(one, rng)
    other.restore({name: value.clone() for name, value in one.state().items()})
    assert torch.equal(one._sums, other._sums)
    for number in range(3):
        assert all(map(torch.equal, one.sample(9, generator(1)), other.sample(9, generator(1))))
        update_randomly(one, np.random.default_rng(number))
        update_randomly(other, np.random.default_rng(number))
    assert torch.equal(one._sums, other._sums)
