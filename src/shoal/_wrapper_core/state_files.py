"""The state of a wrapper in a file: arrays only, so that reading one runs no code."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._wrapper_core.atomic_files import replacing

__all__ = ["State", "load_state", "save_state"]

State = dict[str, npt.NDArray[Any]]

_KIND = "kind"


def save_state(path: str | Path, kind: str, state: State) -> None:
    """Write a state as an ``.npz`` file, under exactly this name; ``kind`` says whose it is."""
    # Not by np.savez: in older versions of NumPy it cannot be kept from pickling.
    with replacing(path) as target, zipfile.ZipFile(target, "w") as archive:
        for name, array in {_KIND: np.array(kind), **state}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def load_state(path: str | Path, kind: str) -> State:
    """Read what :func:`save_state` has written for the same kind."""
    try:
        with np.load(path, allow_pickle=False) as file:
            state: State = dict(file)
    except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        # EOFError: the file is empty. TypeError: it holds an array by itself.
        raise ValueError(f"{path} is not the state of a wrapper") from error
    found = str(state.pop(_KIND, "nothing known"))
    if found != kind:
        raise ValueError(f"{path} holds the state of {found}, not of {kind}")
    return state
