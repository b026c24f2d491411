"""The replay buffer, compared with a bounded deque."""

from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._files import read_file, write_file
from shoal.train._replay import ReplayBuffer, RowLayout

CPU = torch.device("cpu")
LAYOUT = RowLayout({"number": 0, "more": 2})


def rows_of(numbers):
    numbers = np.asarray(numbers, np.float32)
    more = np.stack([numbers * 2, numbers * 3], axis=1).reshape(len(numbers), 2)
    return LAYOUT.pack({"number": numbers, "more": more})


def numbers_in(buffer):
    """Return the sorted numbers of the rows in a buffer."""
    fields = buffer.take(torch.arange(buffer.size))
    numbers = fields["number"]
    assert torch.equal(fields["more"], torch.stack([numbers * 2, numbers * 3], 1))
    return sorted(numbers.tolist())


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 30) | st.just("clear"), max_size=15))
def test_the_buffer_holds_the_newest_rows(capacity, sizes):
    buffer, newest, counter = ReplayBuffer(capacity, LAYOUT, CPU), deque(maxlen=capacity), 0
    expected = {}
    for size in sizes:
        if size == "clear":
            buffer.clear()
            newest.clear()
            expected.clear()
        else:
            rows = list(range(counter, counter + size))
            counter += size
            indices = buffer.add(rows_of(rows))
            newest.extend(rows)
            kept = rows[-capacity:]
            assert len(indices) == len(kept)
            assert len(set(indices.tolist())) == len(kept)
            expected |= dict(zip(indices.tolist(), kept, strict=True))
        assert buffer.size == len(newest) == int(buffer.size_tensor)
        assert numbers_in(buffer) == sorted(newest)
        assert sorted(expected) == list(range(buffer.size))
        numbers = buffer.take(torch.tensor(sorted(expected), dtype=torch.int64))["number"]
        assert numbers.tolist() == [expected[index] for index in sorted(expected)]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.integers(0, 30), max_size=6),
    st.lists(st.integers(0, 30), max_size=6),
    st.lists(st.integers(0, 30), max_size=6),
)
def test_a_restored_buffer_continues_like_the_saved_one(capacity, before, replaced, after):
    one, other = ReplayBuffer(capacity, LAYOUT, CPU), ReplayBuffer(capacity, LAYOUT, CPU)
    counter = 0
    for buffer, sizes in ((one, before), (other, replaced)):
        for size in sizes:
            buffer.add(rows_of(range(counter, counter + size)))
            counter += size
    other.restore(one.state())
    for size in after:
        rows = rows_of(range(counter, counter + size))
        counter += size
        assert np.array_equal(one.add(rows), other.add(rows))
    assert numbers_in(one) == numbers_in(other)
    generators = [torch.Generator().manual_seed(3) for _ in range(2)]
    if one.size:
        assert torch.equal(one.sample(50, generators[0]), other.sample(50, generators[1]))
        assert torch.equal(one.rows[: one.size], other.rows[: one.size])


def test_a_nearly_empty_buffer_is_saved_as_a_small_file(tmp_path):
    buffer = ReplayBuffer(100_000, LAYOUT, CPU)
    buffer.add(rows_of(range(10)))
    write_file(tmp_path / "some", buffer.state())
    assert (tmp_path / "some").stat().st_size < 5000
    other = ReplayBuffer(100_000, LAYOUT, CPU)
    other.restore(read_file(tmp_path / "some"))
    assert numbers_in(other) == list(range(10))


@pytest.mark.parametrize(("capacity", "size"), [(1, 1), (10, 3), (10, 10), (7, 7)])
def test_indices_are_sampled_uniformly(capacity, size):
    buffer = ReplayBuffer(capacity, LAYOUT, CPU)
    buffer.add(rows_of(range(size)))
    indices = buffer.sample(60_000, torch.Generator().manual_seed(0)).numpy()
    frequencies = np.bincount(indices, minlength=size) / 60_000
    assert len(frequencies) == size  # no index without a row
    np.testing.assert_allclose(frequencies, 1 / size, atol=0.01)


@pytest.mark.parametrize("size", [1, 3, 1000, 2**20, 2**24 + 1, 10**9])
def test_the_largest_random_number_gives_a_valid_index(size, monkeypatch):
    buffer = ReplayBuffer(1, LAYOUT, CPU)
    buffer.size_tensor.fill_(size)
    almost = np.nextafter(1.0, 0.0)
    monkeypatch.setattr(torch, "rand", lambda n, **_: torch.full((n,), almost, dtype=torch.float64))
    assert buffer.sample(1, torch.Generator()).tolist() == [size - 1]


def test_rows_are_copied_into_the_buffer():
    buffer = ReplayBuffer(4, LAYOUT, CPU)
    rows = rows_of([1, 2])
    buffer.add(rows)
    rows[:] = 9
    assert numbers_in(buffer) == [1.0, 2.0]


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 4), min_size=1),
    st.integers(0, 5),
)
def test_unpack_reverses_pack(sizes, count):
    layout = RowLayout(sizes)
    rng = np.random.default_rng(0)
    fields = {
        name: rng.normal(size=(count, size) if size else count).astype(np.float32)
        for name, size in sizes.items()
    }
    rows = layout.pack(fields)
    assert rows.shape == (count, layout.width)
    unpacked = layout.unpack(torch.from_numpy(rows))
    assert unpacked.keys() == fields.keys()
    for name, values in fields.items():
        assert np.array_equal(unpacked[name].numpy(), values)
