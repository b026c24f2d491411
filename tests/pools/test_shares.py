"""The division of slots among workers and the caller, and the number of available cores."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.pools import _shares
from shoal.pools._shares import available_cores, share_out


@given(st.integers(1, 300), st.integers(1, 40), st.booleans())
def test_every_slot_has_one_owner_and_shares_differ_by_at_most_one(slots, workers, caller):
    division = share_out(slots, workers, caller)
    owned = [slot for first, last in division.workers for slot in range(first, last)]
    assert owned == list(range(division.num_worker_slots))
    assert division.num_worker_slots + division.own == slots
    sizes = [last - first for first, last in division.workers]
    if caller and slots > 1:
        assert 1 <= division.own <= min(sizes)
        sizes.append(division.own)
    else:
        assert division.own == 0
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert [division.owners().count(worker) for worker in range(len(sizes))] == sizes


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_invalid_numbers_of_workers_are_refused(workers):
    with pytest.raises(ValueError, match="workers must be a positive integer"):
        share_out(4, workers, caller_works=True)


def test_affinity_limits_the_number_of_cores():
    all_cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(all_cores)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, all_cores)


@pytest.mark.parametrize(("quota", "cores"), [(0.2, 1), (1.0, 1), (1.5, 2), (2.0, 2), (None, 64)])
def test_a_cpu_quota_limits_the_number_of_workers(monkeypatch, quota, cores):
    monkeypatch.setattr(_shares, "available_core_numbers", lambda: [*range(64)])
    monkeypatch.setattr(_shares, "read_cpu_limit", lambda: quota)
    assert available_cores() == cores
    assert len(share_out(1000, None, caller_works=True).workers) == max(1, cores - 1)
