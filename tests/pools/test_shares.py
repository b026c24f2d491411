"""Who drives what, and how many cores there are to do it."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.pools import shares
from shoal.pools.shares import available_cores, share_out


@given(st.integers(1, 300), st.integers(1, 40), st.booleans())
def test_every_slot_has_one_owner_and_nobody_much_more_than_others(slots, workers, caller):
    division = share_out(slots, workers, caller)
    owned = [slot for first, last in division.workers for slot in range(first, last)]
    assert owned == list(range(division.remote))
    assert division.remote + division.own == slots
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
def test_wrong_numbers_of_workers(workers):
    with pytest.raises(ValueError, match="workers must be a positive integer"):
        share_out(4, workers, caller_works=True)


def test_cores_by_affinity():
    everywhere = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everywhere)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, everywhere)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_cores_by_control_group(tmp_path, files, quota):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert shares._cgroup_quota(tmp_path) == quota
