"""Atomic replacement of saved files."""

import resource
from contextlib import contextmanager

import numpy as np
import pytest

from shoal._wrapper_core.atomic_files import atomic_write
from shoal._wrapper_core.state_files import load_state, save_state


@contextmanager
def full_disk(max_bytes):
    """Limit the size of files to simulate a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_full_disk_keeps_the_previous_file(tmp_path):
    path = tmp_path / "state.npz"
    save_state(path, "kind", {"numbers": np.arange(3)})
    with full_disk(1000), pytest.raises(OSError, match="too large"):
        save_state(path, "kind", {"numbers": np.arange(100_000)})
    assert load_state(path, "kind")["numbers"].tolist() == [0, 1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]


def test_interrupted_write_leaves_no_file(tmp_path):
    def interrupted():
        with atomic_write(tmp_path / "new") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        save_state(tmp_path / "missing" / "state.npz", "kind", {})
