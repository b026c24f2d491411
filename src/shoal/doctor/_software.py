"""What Shoal runs with: Python, the packages that it cannot do without, a compiler."""

from __future__ import annotations

import multiprocessing
import os
import platform
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import shoal
from shoal import _native
from shoal.pools._processes.process_start import START_METHODS

__all__ = ["Compiler", "Software", "read_software"]

_PATIENCE = 5.0
"""Seconds that a compiler has to say which one it is."""


@dataclass(frozen=True)
class Compiler:
    """The C compiler that the Makefile of a new kernel calls."""

    command: str
    version: str | None
    """What it says of itself; None where there is none."""


@dataclass(frozen=True)
class Software:
    """What Shoal runs with."""

    shoal: str
    python: str
    executable: str
    start_methods: tuple[str, ...]
    """How worker processes can be started here; the first is how they are."""
    doorbell: str
    """How workers are woken: by ``futex``, or through a ``pipe``, which takes longer."""
    compiler: Compiler


def read_software() -> Software:
    """What Shoal runs with here."""
    known = {"fresh", *multiprocessing.get_all_start_methods()}
    return Software(
        shoal.__version__,
        f"{platform.python_implementation()} {platform.python_version()}",
        sys.executable,
        tuple(method for method in START_METHODS if method in known),
        "futex" if _native.has_futex() else "pipe",
        _compiler(os.environ.get("CC") or "cc"),
    )


def _compiler(command: str) -> Compiler:
    words = shlex.split(command)
    if shutil.which(words[0]) is None:
        return Compiler(command, None)
    try:
        said = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return Compiler(command, None)
    return Compiler(command, next(iter(said.splitlines()), command))
