"""Files that are either whole or not there: agents and checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from shoal.errors import CheckpointError

__all__ = ["UNFINISHED", "read_file", "replaced", "write_file"]

_MAGIC = b"shoal 1\n"
_DIGEST_BYTES = 32
_ARRAY = "numpy array"

UNFINISHED = ".unfinished"
"""The end of the name of a file that is being written; a killed process leaves it behind."""


class _Hashing:
    """Writes to a file, and knows the digest of what it has written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of this one at the end, at once and as a whole.

    Whatever happens before, the old file stays as it is, and no other is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_file(path: Path, data: dict[str, Any]) -> None:
    """Write plain data, tensors and arrays.

    Raises:
        CheckpointError: It cannot be written, such as for a full disk. What was there is still.
    """
    try:
        with replaced(path) as file:
            file.write(_MAGIC + bytes(_DIGEST_BYTES))
            hashing = _Hashing(file)
            torch.save(_packed(data), hashing)  # type: ignore[arg-type]
            file.seek(len(_MAGIC))
            file.write(hashing.digest.digest())
    except OSError as error:
        raise CheckpointError(f"{path} could not be written: {error}") from error
    except RuntimeError as error:
        # The writer of torch tells of a failing file in its own words.
        raise CheckpointError(f"{path} could not be written: {_cause(error)}") from error


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error.__context__
    return str(cause if isinstance(cause, OSError) else error).splitlines()[0]


def read_file(path: Path, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Read what :func:`write_file` has written; nothing in it is executed.

    Raises:
        CheckpointError: It is damaged, or no such file.
        FileNotFoundError: It is not there.
    """
    content = path.read_bytes()
    start = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or len(content) < start:
        raise CheckpointError(f"{path} is no checkpoint or agent of Shoal's")
    rest = memoryview(content)[start:]
    if hashlib.blake2b(rest, digest_size=_DIGEST_BYTES).digest() != content[len(_MAGIC) : start]:
        raise CheckpointError(f"{path} is damaged: it is not what was written")
    try:
        data = torch.load(io.BytesIO(rest), map_location=device, weights_only=True)
    except Exception as error:  # whatever its reader meets in what Shoal has not written
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} holds {type(data).__name__}, expected a dict")
    found: dict[str, Any] = _unpacked(data)
    return found


def _packed(data: Any) -> Any:
    """Arrays as tensors, which are read back without executing anything."""
    if isinstance(data, dict):
        return {key: _packed(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        parts = list(map(_packed, data))
        return tuple(parts) if type(data) is tuple else parts
    if isinstance(data, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.array(data, order="C"))}
    if isinstance(data, torch.Tensor):
        # A part of a larger one would be written with all of it.
        return data.detach().clone() if data.untyped_storage().nbytes() > data.nbytes else data
    if isinstance(data, np.generic):
        return data.item()
    return data


def _unpacked(data: Any) -> Any:
    if isinstance(data, dict):
        if data.keys() == {_ARRAY}:
            return data[_ARRAY].cpu().numpy()
        return {key: _unpacked(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_unpacked, data))
    return data
