"""The ring of rows, next to a queue of the newest."""

from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._files import read_file, write_file
from shoal.train._replay import Memory, RowLayout

CPU = torch.device("cpu")
LAYOUT = RowLayout({"number": 0, "more": 2})


def numbered(numbers):
    numbers = np.asarray(numbers, np.float32)
    more = np.stack([numbers * 2, numbers * 3], axis=1).reshape(len(numbers), 2)
    return LAYOUT.pack({"number": numbers, "more": more})


def held(memory):
    """The numbers in it, wherever they are."""
    found = memory.take(torch.arange(memory.size))
    assert torch.equal(found["more"], torch.stack([found["number"] * 2, found["number"] * 3], 1))
    return sorted(found["number"].tolist())


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 30) | st.just("clear"), max_size=15))
def test_it_holds_the_newest_rows(capacity, sizes):
    memory, newest, counter = Memory(capacity, LAYOUT, CPU), deque(maxlen=capacity), 0
    where = {}
    for size in sizes:
        if size == "clear":
            memory.clear()
            newest.clear()
            where.clear()
        else:
            rows = list(range(counter, counter + size))
            counter += size
            places = memory.add(numbered(rows))
            newest.extend(rows)
            kept = rows[-capacity:]
            assert len(places) == len(kept)
            assert len(set(places.tolist())) == len(kept)
            where |= dict(zip(places.tolist(), kept, strict=True))
        assert memory.size == len(newest) == int(memory.size_there)
        assert held(memory) == sorted(newest)
        assert sorted(where) == list(range(memory.size))
        found = memory.take(torch.tensor(sorted(where), dtype=torch.int64))["number"]
        assert found.tolist() == [where[place] for place in sorted(where)]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.integers(0, 30), max_size=6),
    st.lists(st.integers(0, 30), max_size=6),
    st.lists(st.integers(0, 30), max_size=6),
)
def test_a_memory_that_is_restored_goes_on(capacity, before, others, after):
    one, other = Memory(capacity, LAYOUT, CPU), Memory(capacity, LAYOUT, CPU)
    counter = 0
    for memory, sizes in ((one, before), (other, others)):
        for size in sizes:
            memory.add(numbered(range(counter, counter + size)))
            counter += size
    other.restore(one.state())
    for size in after:
        rows = numbered(range(counter, counter + size))
        counter += size
        assert np.array_equal(one.add(rows), other.add(rows))
    assert held(one) == held(other)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    if one.size:
        assert torch.equal(one.draw(50, generators[0]), other.draw(50, generators[1]))
        places = torch.arange(one.size)
        assert torch.equal(one.rows[places], other.rows[places])


def test_a_small_part_of_a_large_memory_is_a_small_file(tmp_path):
    memory = Memory(100_000, LAYOUT, CPU)
    memory.add(numbered(range(10)))
    write_file(tmp_path / "some", memory.state())
    assert (tmp_path / "some").stat().st_size < 5000
    other = Memory(100_000, LAYOUT, CPU)
    other.restore(read_file(tmp_path / "some"))
    assert held(other) == list(range(10))


@pytest.mark.parametrize(("capacity", "size"), [(1, 1), (10, 3), (10, 10), (7, 7)])
def test_every_place_is_drawn_as_often_as_any_other(capacity, size):
    memory = Memory(capacity, LAYOUT, CPU)
    memory.add(numbered(range(size)))
    drawn = memory.draw(60_000, torch.Generator().manual_seed(0)).numpy()
    counts = np.bincount(drawn, minlength=size) / 60_000
    assert len(counts) == size  # never a place with nothing in it
    np.testing.assert_allclose(counts, 1 / size, atol=0.01)


@pytest.mark.parametrize("size", [1, 3, 1000, 2**20, 2**24 + 1, 10**9])
def test_the_largest_draw_is_still_a_place(size, monkeypatch):
    memory = Memory(1, LAYOUT, CPU)
    memory.size_there.fill_(size)
    almost = np.nextafter(1.0, 0.0)
    monkeypatch.setattr(torch, "rand", lambda n, **_: torch.full((n,), almost, dtype=torch.float64))
    assert memory.draw(1, torch.Generator()).tolist() == [size - 1]


def test_rows_given_in_may_change_afterwards():
    memory = Memory(4, LAYOUT, CPU)
    rows = numbered([1, 2])
    memory.add(rows)
    rows[:] = 9
    assert held(memory) == [1.0, 2.0]


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 4), min_size=1),
    st.integers(0, 5),
)
def test_parts_of_rows_come_back(sizes, count):
    layout = RowLayout(sizes)
    rng = np.random.default_rng(0)
    parts = {
        name: rng.normal(size=(count, size) if size else count).astype(np.float32)
        for name, size in sizes.items()
    }
    rows = layout.pack(parts)
    assert rows.shape == (count, layout.width)
    found = layout.unpack(torch.from_numpy(rows))
    assert found.keys() == parts.keys()
    for name, part in parts.items():
        assert np.array_equal(found[name].numpy(), part)
