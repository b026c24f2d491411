"""The seeds of the slots."""

import numpy as np
import pytest

import shoal
from shoal.errors import SeedError
from shoal.vector._seeding import slot_seeds


@pytest.mark.parametrize("seed", [42, np.int64(42), np.uint8(42)])
def test_one_seed_counts_up(seed):
    with shoal.make("CartPole-v1", num_envs=3) as envs:
        envs.reset(seed=seed)
        assert envs.np_random_seed == (42, 43, 44)
        envs.reset()
        assert envs.np_random_seed == (42, 43, 44)


@pytest.mark.parametrize("seed", [[3, 1, 2], (3, 1, 2), np.array([3, 1, 2])])
def test_one_seed_per_slot(seed):
    with shoal.make("CartPole-v1", num_envs=3) as envs:
        envs.reset(seed=seed)
        assert envs.np_random_seed == (3, 1, 2)


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed must be a non-negative integer"),
        ([0, -5, 1], "the seed of slot 1"),
        ([0, 1.5, 1], "the seed of slot 1"),
        ([0, 1], "num_envs=3 but got length=2"),
        (1.5, "must be an integer"),
        (True, "must be an integer"),
        ("12", "must be an integer"),
    ],
)
def test_invalid_seeds_reset_nothing(seed, message):
    with shoal.make("CartPole-v1", num_envs=3) as envs:
        envs.reset(seed=7)
        with pytest.raises(SeedError, match=message):
            envs.reset(seed=seed)
        assert envs.np_random_seed == (7, 8, 9)


def test_independent_seeds_do_not_overlap():
    assert len(set(slot_seeds(146, 1024, "independent"))) == 1024
    assert slot_seeds(146, 1024, "independent")[:600] == slot_seeds(146, 600, "independent")
    one = slot_seeds(1, 64, "independent")
    two = slot_seeds(2, 64, "independent")
    assert len({*one, *two}) == 128
    assert one == slot_seeds(1, 64, "independent")
    assert one[:8] == slot_seeds(1, 8, "independent")
    with shoal.make("CartPole-v1", num_envs=3, seeding="independent") as envs:
        envs.reset(seed=1)
        assert envs.np_random_seed == tuple(one[:3])


def test_np_random_returns_the_generators_of_the_environments():
    with shoal.make("CartPole-v1", num_envs=2) as envs:
        envs.reset(seed=5)
        assert all(isinstance(rng, np.random.Generator) for rng in envs.np_random)
        assert len(envs.np_random) == 2
