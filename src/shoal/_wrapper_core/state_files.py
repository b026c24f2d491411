"""Files for the state of a wrapper: arrays only, so that loading one executes no code."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._wrapper_core.atomic_files import atomic_write

__all__ = ["State", "load_state", "save_state"]

State = dict[str, npt.NDArray[Any]]

_KIND = "kind"


def save_state(path: str | Path, kind: str, state: State) -> None:
    """Write a state to an ``.npz`` file of exactly this name; ``kind`` names the wrapper class."""
    # Not np.savez, which in older versions of NumPy cannot be prevented from pickling.
    with atomic_write(path) as target, zipfile.ZipFile(target, "w") as archive:
        for name, array in {_KIND: np.array(kind), **state}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def load_state(path: str | Path, kind: str) -> State:
    """Read a state that :func:`save_state` has written for the same kind."""
    try:
        with np.load(path, allow_pickle=False) as file:
            state: State = dict(file)
    except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        # EOFError: the file is empty. TypeError: the file contains a single array.
        raise ValueError(f"{path} is not the state of a wrapper") from error
    if _KIND not in state:
        raise ValueError(f"{path} is not the state of a wrapper")
    saved_kind = str(state.pop(_KIND))
    if saved_kind != kind:
        raise ValueError(f"{path} contains the state of {saved_kind}, expected {kind}")
    return state
