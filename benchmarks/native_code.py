"""Compilation of the C sources of the benchmarks."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["built"]

_SOURCES = Path(__file__).with_name("native")


def built(name: str, *options: str) -> Path:
    """Compile a source file into a shared library that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-benchmarks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / f"{name}.so"
    compiler = os.environ.get("CC", "cc")
    flags = ["-std=c11", "-O3", "-Wall", "-fPIC", "-shared", *options]
    command = [compiler, *flags, str(_SOURCES / f"{name}.c"), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    return library
