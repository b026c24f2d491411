"""What is saved is saved as a whole, or what was there before stays."""

import resource
from contextlib import contextmanager

import numpy as np
import pytest

from shoal._wrapper_core.atomic_files import atomic_write
from shoal._wrapper_core.state_files import load_state, save_state


@contextmanager
def a_full_disk(room):
    """No file can grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_state_survives_a_full_disk(tmp_path):
    path = tmp_path / "state.npz"
    save_state(path, "kind", {"numbers": np.arange(3)})
    with a_full_disk(1000), pytest.raises(OSError, match="too large"):
        save_state(path, "kind", {"numbers": np.arange(100_000)})
    assert load_state(path, "kind")["numbers"].tolist() == [0, 1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]


def test_an_error_in_between_leaves_nothing(tmp_path):
    def interrupted():
        with atomic_write(tmp_path / "new") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        save_state(tmp_path / "missing" / "state.npz", "kind", {})
