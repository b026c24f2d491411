"""The software that Shoal runs with: Python, start methods, a C compiler."""

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

_TIMEOUT = 5.0
"""Seconds that a compiler may take to print its version."""


@dataclass(frozen=True)
class Compiler:
    """The C compiler that the Makefile of a new kernel uses."""

    command: str
    version: str | None
    """The first line of ``--version``; None if the compiler cannot be run."""


@dataclass(frozen=True)
class Software:
    """The software that Shoal runs with."""

    shoal: str
    python: str
    executable: str
    start_methods: tuple[str, ...]
    """The available start methods of worker processes; the first is the default."""
    doorbell: str
    """How workers are woken: ``futex``, or ``pipe``, which is slower."""
    compiler: Compiler


def read_software() -> Software:
    """Read the facts about the installed software."""
    available = {"fresh", *multiprocessing.get_all_start_methods()}
    return Software(
        shoal.__version__,
        f"{platform.python_implementation()} {platform.python_version()}",
        sys.executable,
        tuple(method for method in START_METHODS if method in available),
        "futex" if _native.has_futex() else "pipe",
        _compiler(os.environ.get("CC") or "cc"),
    )


def _compiler(command: str) -> Compiler:
    words = shlex.split(command)
    if shutil.which(words[0]) is None:
        return Compiler(command, None)
    try:
        output = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, timeout=_TIMEOUT, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return Compiler(command, None)
    return Compiler(command, next(iter(output.splitlines()), command))
