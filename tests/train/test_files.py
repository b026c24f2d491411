"""Agent and checkpoint files: round trips, detection of damage, and atomic writes."""

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

OLD = {"old": torch.arange(5), "name": "previous content"}
LARGE = {"weights": torch.randn(30_000), "parts": [torch.randn(100) for _ in range(5)]}

with tempfile.TemporaryDirectory() as _folder:
    write_file(Path(_folder, "some"), OLD)
    WHOLE = Path(_folder, "some").read_bytes()


# Round trips

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


def identical(one, other):
    """Whether data has the same types, shapes and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(identical, one, other))
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and (
            one.tobytes() == other.tobytes()
        )
    if isinstance(one, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes()
    return same(one, other)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=6), nested, max_size=3))
def test_round_trip(data):
    with tempfile.TemporaryDirectory() as folder:
        write_file(Path(folder, "some"), data)
        assert identical(read_file(Path(folder, "some")), data)


class Pair(NamedTuple):
    first: object
    second: object


def test_named_tuples_become_sequences(tmp_path):
    write_file(
        tmp_path / "some", {"pair": Pair(np.ones(2), [np.float32(0.5), {"x": np.arange(3)}])}
    )
    first, second = read_file(tmp_path / "some")["pair"]
    assert first.tolist() == [1.0, 1.0]
    assert second[0] == 0.5
    assert second[1]["x"].tolist() == [0, 1, 2]


def test_numpy_scalars_become_python_numbers(tmp_path):
    data = {"a": np.float64(0.1), "b": np.int64(-3), "c": np.bool_(True), "d": [np.float32(0.5)]}
    write_file(tmp_path / "some", data)
    data = read_file(tmp_path / "some")
    assert data == {"a": 0.1, "b": -3, "c": True, "d": [0.5]}


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3)[:, ::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.broadcast_to(np.float32(3), (2, 2)),
        np.array(3.5),
    ],
    ids=["reversed", "fortran", "broadcast", "0-d"],
)
def test_arrays_of_any_memory_layout(array, tmp_path, recwarn):
    write_file(tmp_path / "some", {"array": array})
    loaded = read_file(tmp_path / "some")["array"]
    assert loaded.shape == array.shape
    assert np.array_equal(loaded, array)
    assert not recwarn.list


def test_random_states_are_restored(tmp_path):
    rng, generator = np.random.default_rng(3), torch.Generator().manual_seed(3)
    state = {"rng": rng.bit_generator.state, "generator": generator.get_state()}
    write_file(tmp_path / "some", state)
    loaded = read_file(tmp_path / "some")
    other, other_generator = np.random.default_rng(4), torch.Generator().manual_seed(4)
    other.bit_generator.state = loaded["rng"]
    other_generator.set_state(loaded["generator"])
    assert other.random(9).tolist() == rng.random(9).tolist()
    assert torch.equal(torch.rand(9, generator=generator), torch.rand(9, generator=other_generator))


def test_view_of_a_tensor_is_written_without_its_storage(tmp_path):
    large = torch.zeros(1_000_000)
    write_file(tmp_path / "some", {"part": large[3:7], "state": OrderedDict(a=large[:2])})
    assert (tmp_path / "some").stat().st_size < 5000


def test_loaded_arrays_are_writable(tmp_path):
    write_file(tmp_path / "some", {"array": np.zeros(3), "tensor": torch.zeros(3)})
    loaded = read_file(tmp_path / "some")
    loaded["array"][0] = loaded["tensor"][0] = 1.0
    assert read_file(tmp_path / "some")["array"].tolist() == [0.0, 0.0, 0.0]


def test_equal_data_gives_equal_files(tmp_path):
    for name in ("one", "two"):
        write_file(tmp_path / name, OLD)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes() == WHOLE


def test_missing_folders_are_created(tmp_path):
    write_file(tmp_path / "a" / "b" / "some", OLD)
    assert same(read_file(tmp_path / "a" / "b" / "some"), OLD)


# Invalid files


@contextmanager
def file_of(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.file")
        path.write_bytes(content)
        yield path


def check_rejected(content, problem=r"some\.file"):
    with file_of(content) as path, pytest.raises(CheckpointError, match=problem):
        read_file(path)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_truncated_file_is_rejected(length):
    check_rejected(WHOLE[:length])


@settings(max_examples=250, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7))
def test_single_flipped_bit_is_detected(place, bit):
    damaged = bytearray(WHOLE)
    damaged[place] ^= 1 << bit
    check_rejected(bytes(damaged))


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=50))
def test_trailing_data_is_rejected(more):
    check_rejected(WHOLE + more, "damaged")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(1, 200))
def test_zeroed_ranges_are_detected(begin, length):
    damaged = WHOLE[:begin] + bytes(length) + WHOLE[begin + length :]
    if damaged != WHOLE:
        check_rejected(damaged)


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
    "empty": b"",
    "text": b"shoal",
    "magic only": WHOLE[:8],
    "json": b'{"file": "agent"}',
    "pickle": pickle.dumps(OLD),
    "torch.save": plain_torch(OLD),
    "zip": zipped(),
    "bytes": bytes(range(256)) * 20,
    "other version": b"shoal 2\n" + WHOLE[8:],
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_foreign_file_is_rejected(content):
    check_rejected(content, r"some\.file is (not a checkpoint or agent file|damaged)")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def sealed(content):
    """Return a file with a valid digest of arbitrary content."""
    return WHOLE[:8] + hashlib.blake2b(content, digest_size=32).digest() + content


SEALED = {
    "empty": b"",
    "text": b"not an archive",
    "pickle": pickle.dumps(OLD),
    "zip": zipped(),
    "list": plain_torch([1, 2]),
    "truncated archive": plain_torch(OLD)[:700],
    "malicious pickle": pickle.dumps(Evil()),
    "malicious archive": plain_torch({"a": Evil()}),
}


@pytest.mark.parametrize("content", SEALED.values(), ids=SEALED)
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_invalid_content_with_valid_digest_is_rejected(content, tmp_path, monkeypatch):
    """No code is executed, and the error is a CheckpointError."""
    monkeypatch.chdir(tmp_path)
    try:
        check_rejected(sealed(content))
    finally:
        assert not (tmp_path / "executed").exists()


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nowhere")


# Failures during a write


def file_names(folder):
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def max_file_size(size):
    """Limit the size of files, to simulate a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("size", [0, 1, 8, 39, 40, 41, 100, 1000, 64_000, 120_000])
def test_full_disk_keeps_only_the_old_file(size, exists, tmp_path):
    path = tmp_path / "some"
    if exists:
        write_file(path, OLD)
    problem = r"some could not be written: .*File too large"
    with pytest.raises(CheckpointError, match=problem), max_file_size(size):
        write_file(path, LARGE)
    assert file_names(tmp_path) == ["some"] * exists
    if exists:
        assert same(read_file(path), OLD)
    write_file(path, LARGE)  # succeeds when the limit is removed
    assert same(read_file(path), LARGE)


def test_failing_fsync_or_rename_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "some"
    write_file(path, OLD)
    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(OSError(28, "No space left on device")))
            with pytest.raises(CheckpointError, match="No space left on device"):
                write_file(path, LARGE)
        assert file_names(tmp_path) == ["some"]
        assert same(read_file(path), OLD)


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("call", [(torch, "save"), (os, "fsync"), (os, "replace")])
def test_interrupt_keeps_only_the_old_file(call, tmp_path, monkeypatch):
    path = tmp_path / "some"
    write_file(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(*call, failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            write_file(path, LARGE)
    assert file_names(tmp_path) == ["some"]
    assert same(read_file(path), OLD)


@pytest.mark.parametrize(
    "data", [{"a": np.array(["text"])}, {"a": np.array([1], ">i4")}, {"a": [lambda: None]}]
)
def test_unsupported_data_keeps_only_the_old_file(data, tmp_path):
    path = tmp_path / "some"
    write_file(path, OLD)
    with pytest.raises(Exception, match=r"convert|byte order|pickle"):
        write_file(path, data)
    assert file_names(tmp_path) == ["some"]
    assert same(read_file(path), OLD)


def test_error_names_the_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "some", tmp_path / "folder"):
        with pytest.raises(CheckpointError, match=f"{path.name} could not be written"):
            write_file(path, OLD)
    assert file_names(tmp_path) == ["file", "folder"]
    assert file_names(tmp_path / "folder") == []


def test_error_in_replaced_block_keeps_the_old_file(tmp_path):
    path = tmp_path / "some"
    path.write_text("old")

    def write():
        with replaced(path) as file:
            file.write(b"new")
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        write()
    assert file_names(tmp_path) == ["some"]
    assert path.read_text() == "old"
    with replaced(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_open_file_keeps_its_content_when_replaced(tmp_path):
    path = tmp_path / "some"
    write_file(path, OLD)
    with path.open("rb") as file:
        start = file.read(100)
        write_file(path, LARGE)
        assert start + file.read() == WHOLE
