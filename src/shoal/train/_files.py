"""Atomic reading and writing of agent and checkpoint files."""

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
"""Suffix of a file that is being written. A killed process may leave such a file behind."""


class _HashingWriter:
    """A writable file wrapper that computes the digest of the written data."""

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
    """Open a temporary file that atomically replaces ``path`` on success.

    On an error the old file is kept unchanged and the temporary file is removed.
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
        CheckpointError: If the file cannot be written, for example because the disk is full. An
            existing file is kept.
    """
    try:
        with replaced(path) as file:
            file.write(_MAGIC + bytes(_DIGEST_BYTES))
            hashing = _HashingWriter(file)
            torch.save(_packed(data), hashing)  # type: ignore[arg-type]
            file.seek(len(_MAGIC))
            file.write(hashing.digest.digest())
    except OSError as error:
        raise CheckpointError(f"{path} could not be written: {error}") from error
    except RuntimeError as error:
        # torch.save reports a failing file as a RuntimeError.
        raise CheckpointError(f"{path} could not be written: {_cause(error)}") from error


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error.__context__
    return str(cause if isinstance(cause, OSError) else error).splitlines()[0]


def read_file(path: Path, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Read a file written by :func:`write_file`, without executing code from it.

    Raises:
        CheckpointError: If the file is damaged or was not written by :func:`write_file`.
        FileNotFoundError: If the file does not exist.
    """
    content = path.read_bytes()
    start = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or len(content) < start:
        raise CheckpointError(f"{path} is not a checkpoint or agent file of Shoal")
    payload = memoryview(content)[start:]
    digest = hashlib.blake2b(payload, digest_size=_DIGEST_BYTES).digest()
    if digest != content[len(_MAGIC) : start]:
        raise CheckpointError(f"{path} is damaged: its checksum does not match")
    try:
        data = torch.load(io.BytesIO(payload), map_location=device, weights_only=True)
    except Exception as error:  # torch.load raises many types for files with foreign content
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} contains a {type(data).__name__}, expected a dict")
    unpacked: dict[str, Any] = _unpacked(data)
    return unpacked


def _packed(data: Any) -> Any:
    """Replace arrays by tensors, which torch can load with ``weights_only=True``."""
    if isinstance(data, dict):
        return {key: _packed(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        parts = list(map(_packed, data))
        return tuple(parts) if type(data) is tuple else parts
    if isinstance(data, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.array(data, order="C"))}
    if isinstance(data, torch.Tensor):
        # torch.save writes the whole storage of a view.
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
