"""Files of agents and checkpoints: whole, or an error that leaves the old one as it was."""

import hashlib
import io
import os
import pickle
import resource
import tempfile
import zipfile
from collections import OrderedDict
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from shoal.errors import CheckpointError
from shoal.train._files import read_file, replaced, write_file
from tests.train.agents.making import same

OLD = {"old": torch.arange(5), "name": "what was there before"}
LARGE = {"weights": torch.randn(30_000), "parts": [torch.randn(100) for _ in range(5)]}

with tempfile.TemporaryDirectory() as _folder:
    write_file(Path(_folder, "some"), OLD)
    WHOLE = Path(_folder, "some").read_bytes()


# What comes back

dtypes = st.sampled_from(
    ["?", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(max_size=5),
    dtypes.flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=3))
    ),
    st.sampled_from([torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool]).map(
        lambda dtype: torch.ones(2, 3, dtype=dtype)
    ),
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=4) | st.integers(0, 9), inner, max_size=3),
    ),
    max_leaves=6,
)


def alike(one, other):
    """Whether data came back as it was, of the same types, shapes and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and (
            one.tobytes() == other.tobytes()
        )
    if isinstance(one, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes()
    return same(one, other)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=6), nested, max_size=3))
def test_what_was_written_is_read(data):
    with tempfile.TemporaryDirectory() as folder:
        write_file(Path(folder, "some"), data)
        assert alike(read_file(Path(folder, "some")), data)


class Pair(NamedTuple):
    first: object
    second: object


def test_tuples_with_names_come_back_as_what_they_hold(tmp_path):
    write_file(
        tmp_path / "some", {"pair": Pair(np.ones(2), [np.float32(0.5), {"x": np.arange(3)}])}
    )
    first, second = read_file(tmp_path / "some")["pair"]
    assert first.tolist() == [1.0, 1.0]
    assert second[0] == 0.5
    assert second[1]["x"].tolist() == [0, 1, 2]


def test_numbers_of_numpy_come_back_as_numbers(tmp_path):
    data = {"a": np.float64(0.1), "b": np.int64(-3), "c": np.bool_(True), "d": [np.float32(0.5)]}
    write_file(tmp_path / "some", data)
    found = read_file(tmp_path / "some")
    assert found == {"a": 0.1, "b": -3, "c": True, "d": [0.5]}


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3)[:, ::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.broadcast_to(np.float32(3), (2, 2)),
        np.array(3.5),
    ],
    ids=["backwards", "fortran", "broadcast", "of no dimension"],
)
def test_arrays_may_lie_in_memory_as_they_like(array, tmp_path, recwarn):
    write_file(tmp_path / "some", {"array": array})
    found = read_file(tmp_path / "some")["array"]
    assert found.shape == array.shape
    assert np.array_equal(found, array)
    assert not recwarn.list


def test_random_states_come_back(tmp_path):
    rng, generator = np.random.default_rng(3), torch.Generator().manual_seed(3)
    state = {"rng": rng.bit_generator.state, "generator": generator.get_state()}
    write_file(tmp_path / "some", state)
    found = read_file(tmp_path / "some")
    other, other_generator = np.random.default_rng(4), torch.Generator().manual_seed(4)
    other.bit_generator.state = found["rng"]
    other_generator.set_state(found["generator"])
    assert other.random(9).tolist() == rng.random(9).tolist()
    assert torch.equal(torch.rand(9, generator=generator), torch.rand(9, generator=other_generator))


def test_a_part_of_a_tensor_is_written_without_the_rest(tmp_path):
    large = torch.zeros(1_000_000)
    write_file(tmp_path / "some", {"part": large[3:7], "state": OrderedDict(a=large[:2])})
    assert (tmp_path / "some").stat().st_size < 5000


def test_what_is_read_may_be_written_to(tmp_path):
    write_file(tmp_path / "some", {"array": np.zeros(3), "tensor": torch.zeros(3)})
    found = read_file(tmp_path / "some")
    found["array"][0] = found["tensor"][0] = 1.0
    assert read_file(tmp_path / "some")["array"].tolist() == [0.0, 0.0, 0.0]


def test_the_same_data_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        write_file(tmp_path / name, OLD)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() == WHOLE


def test_folders_are_made(tmp_path):
    write_file(tmp_path / "a" / "b" / "some", OLD)
    assert same(read_file(tmp_path / "a" / "b" / "some"), OLD)


# What is refused


@contextmanager
def file_of(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.file")
        path.write_bytes(content)
        yield path


def refused(content, problem=r"some\.file"):
    with file_of(content) as path, pytest.raises(CheckpointError, match=problem):
        read_file(path)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_was_cut_off_is_refused(length):
    refused(WHOLE[:length])


@settings(max_examples=250, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7))
def test_a_single_bit_that_flipped_is_noticed(place, bit):
    damaged = bytearray(WHOLE)
    damaged[place] ^= 1 << bit
    refused(bytes(damaged))


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=50))
def test_more_than_was_written_is_refused(more):
    refused(WHOLE + more, "damaged")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(1, 200))
def test_zeros_where_a_disk_has_lost_something_are_noticed(begin, length):
    damaged = WHOLE[:begin] + bytes(length) + WHOLE[begin + length :]
    if damaged != WHOLE:
        refused(damaged)


def plain_torch(data):
    buffer = io.BytesIO()
    torch.save(data, buffer)
    return buffer.getvalue()


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("some.txt", "text")
    return buffer.getvalue()


FOREIGN = {
    "nothing": b"",
    "text": b"shoal",
    "a beginning": WHOLE[:8],
    "json": b'{"file": "agent"}',
    "a pickle": pickle.dumps(OLD),
    "torch's own": plain_torch(OLD),
    "a zip": zipped(),
    "numbers": bytes(range(256)) * 20,
    "another version": b"shoal 2\n" + WHOLE[8:],
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_something_else_is_refused(content):
    refused(content, r"some\.file is (no checkpoint or agent|damaged)")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def sealed(content):
    """With the digest that it should have: anybody can compute it."""
    return WHOLE[:8] + hashlib.blake2b(content, digest_size=32).digest() + content


SEALED = {
    "nothing": b"",
    "text": b"no archive at all",
    "a pickle": pickle.dumps(OLD),
    "a zip": zipped(),
    "a list": plain_torch([1, 2]),
    "half an archive": plain_torch(OLD)[:700],
    "a pickle that makes a folder": pickle.dumps(Evil()),
    "an archive that makes a folder": plain_torch({"a": Evil()}),
}


@pytest.mark.parametrize("content", SEALED.values(), ids=SEALED)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_digest_that_is_right_proves_nothing(content, tmp_path, monkeypatch):
    """Nothing is executed, and the error is the one that callers wait for."""
    monkeypatch.chdir(tmp_path)
    try:
        refused(sealed(content))
    finally:
        assert not (tmp_path / "executed").exists()


def test_no_file_is_another_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nowhere")


# What happens while it is written


def only(folder):
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def files_of_at_most(size):
    """A disk that is full after so many bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("size", [0, 1, 8, 39, 40, 41, 100, 1000, 64_000, 120_000])
def test_a_full_disk_leaves_the_old_file_and_no_other(size, there, tmp_path):
    path = tmp_path / "some"
    if there:
        write_file(path, OLD)
    problem = r"some could not be written: .*File too large"
    with pytest.raises(CheckpointError, match=problem), files_of_at_most(size):
        write_file(path, LARGE)
    assert only(tmp_path) == ["some"] * there
    if there:
        assert same(read_file(path), OLD)
    write_file(path, LARGE)  # and when there is room again
    assert same(read_file(path), LARGE)


def test_a_disk_that_is_full_at_the_last_moment_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "some"
    write_file(path, OLD)
    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(OSError(28, "No space left on device")))
            with pytest.raises(CheckpointError, match="No space left on device"):
                write_file(path, LARGE)
        assert only(tmp_path) == ["some"]
        assert same(read_file(path), OLD)


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("call", [(torch, "save"), (os, "fsync"), (os, "replace")])
def test_an_interrupt_leaves_the_old_file_and_no_other(call, tmp_path, monkeypatch):
    path = tmp_path / "some"
    write_file(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(*call, failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            write_file(path, LARGE)
    assert only(tmp_path) == ["some"]
    assert same(read_file(path), OLD)


@pytest.mark.parametrize(
    "data", [{"a": np.array(["text"])}, {"a": np.array([1], ">i4")}, {"a": [lambda: None]}]
)
def test_what_cannot_be_written_leaves_the_old_file_and_no_other(data, tmp_path):
    path = tmp_path / "some"
    write_file(path, OLD)
    with pytest.raises(Exception, match=r"convert|byte order|pickle"):
        write_file(path, data)
    assert only(tmp_path) == ["some"]
    assert same(read_file(path), OLD)


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "some", tmp_path / "folder"):
        with pytest.raises(CheckpointError, match=f"{path.name} could not be written"):
            write_file(path, OLD)
    assert only(tmp_path) == ["file", "folder"]
    assert only(tmp_path / "folder") == []


def test_what_an_error_interrupts_takes_no_place(tmp_path):
    path = tmp_path / "some"
    path.write_text("old")

    def write():
        with replaced(path) as file:
            file.write(b"new")
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        write()
    assert only(tmp_path) == ["some"]
    assert path.read_text() == "old"
    with replaced(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"  # until it is whole
    assert path.read_text() == "new"


def test_readers_see_one_file_or_the_other(tmp_path):
    """A file that is open stays what it was."""
    path = tmp_path / "some"
    write_file(path, OLD)
    with path.open("rb") as file:
        begin = file.read(100)
        write_file(path, LARGE)
        assert begin + file.read() == WHOLE
