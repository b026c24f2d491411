"""The arena: aligned columns in private or shared memory."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal._memory import Arena, Field

FIELDS = {
    "bytes": Field(np.dtype(np.uint8), (3,)),
    "empty": Field(np.dtype(np.float32), (0, 2)),
    "flag": Field(np.dtype(np.bool_)),
    "matrix": Field(np.dtype(np.float64), (2, 2)),
}


@pytest.mark.parametrize("shared", [False, True])
def test_columns_are_aligned_zeroed_and_disjoint(shared):
    arena = Arena(FIELDS, rows=5, shared=shared)
    for name, field in FIELDS.items():
        column = arena[name]
        assert column.shape == (5, *field.shape)
        assert column.dtype == field.dtype
        assert column.flags.c_contiguous
        assert column.flags.writeable
        if column.size:
            assert column.ctypes.data % 64 == 0
        assert not column.any()
    for number, name in enumerate(FIELDS, start=1):
        arena[name][:] = number
    for number, name in enumerate(FIELDS, start=1):
        assert (arena[name] == FIELDS[name].dtype.type(number)).all()
    arena.close()


@given(
    st.lists(st.tuples(st.sampled_from("?bhifd"), st.lists(st.integers(0, 5), max_size=3))),
    st.integers(1, 9),
)
def test_columns_of_random_fields_are_disjoint(shapes, rows):
    fields = {str(k): Field(np.dtype(code), tuple(shape)) for k, (code, shape) in enumerate(shapes)}
    arena = Arena(fields, rows)
    spans = sorted(
        (arena[name].ctypes.data, arena[name].ctypes.data + arena[name].nbytes)
        for name in fields
        if arena[name].nbytes
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_child_process_shares_memory():
    arena = Arena(FIELDS, rows=2, shared=True)
    child = os.fork()
    if child == 0:
        attached = Arena(FIELDS, rows=2, descriptor=arena.descriptor)
        attached["matrix"][1] = 7
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (arena["matrix"][1] == 7).all()
    assert not arena["matrix"][0].any()
    arena.close()


def test_shared_memory_outlives_its_descriptor():
    before = set(os.listdir("/proc/self/fd"))
    arena = Arena(FIELDS, rows=2, shared=True)
    column = arena["matrix"]
    arena.close()
    arena.close()
    column[:] = 3
    assert (column == 3).all()
    del arena, column
    assert set(os.listdir("/proc/self/fd")) == before


def test_attaching_with_other_fields_is_refused():
    arena = Arena(FIELDS, rows=2, shared=True)
    with pytest.raises(ValueError, match="bytes, these fields need"):
        Arena(FIELDS, rows=2000, descriptor=arena.descriptor)
    arena.close()
