"""Kernels in shared libraries, written in C or C++ against ``shoal_kernel.h``."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from shoal import _native
from shoal.errors import KernelDefinitionError
from shoal.kernels._definition import Kernel, space_of_leaves

__all__ = ["include_dir", "load"]

_ENTRY = "shoal_kernel_entry"

_LOADED: dict[Path, tuple[int, int]] = {}
"""The libraries that this process has loaded, with their inode and modification time."""


def include_dir() -> str:
    """Return the directory of ``shoal_kernel.h``, for the compiler's option ``-I``."""
    return str(Path(__file__).parents[1] / "include")


def load(path: str | Path, *, check_nan: bool = True) -> Kernel:
    """Load a kernel from a shared library.

    Args:
        path: The library, which must export ``shoal_kernel_entry``; see ``shoal_kernel.h``.
        check_nan: Whether a NaN in an observation or a reward is reported as a failure.

    Raises:
        OSError: The library does not exist or cannot be loaded.
        KernelDefinitionError: The library contains no kernel, or an invalid or incompatible one.
    """
    library = ctypes.CDLL(str(_loadable(Path(path).resolve(strict=True))))
    try:
        entry = getattr(library, _ENTRY)
    except AttributeError:
        raise KernelDefinitionError(
            f"{path} does not export {_ENTRY}; see shoal_kernel.h (in C++ the function must be "
            'declared extern "C")'
        ) from None
    entry.argtypes, entry.restype = (), ctypes.c_void_p
    recipe = partial(load, Path(path).resolve(), check_nan=check_nan)
    try:
        native = _native.Kernel.at(entry() or 0, library)
        return _from_description(native, check_nan=check_nan, recipe=recipe)
    except KernelDefinitionError as error:
        raise KernelDefinitionError(f"{path}: {error}") from None


def _loadable(library: Path) -> Path:
    """Return a path from which the current version of the library is loaded.

    If another version was loaded from this path before, this is a copy: the system identifies
    loaded libraries by path and would return the old version.
    """
    status = library.stat()
    version = status.st_ino, status.st_mtime_ns
    if _LOADED.setdefault(library, version) == version:
        return library
    folder = Path(tempfile.mkdtemp(prefix="shoal-kernel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copy(library, folder))


def _from_description(native: _native.Kernel, **rest: Any) -> Kernel:
    """Create a kernel whose spaces follow from its native description."""
    parts = native.description()
    metadata: dict[str, Any] = {"render_modes": []}
    if parts["draws"]:
        metadata = {"render_modes": ["rgb_array"], "render_fps": parts["frames_per_second"] or 30}
    return Kernel(
        native,
        space_of_leaves(parts["observations"], "observations"),
        space_of_leaves(parts["actions"], "actions"),
        max_episode_steps=parts["max_episode_steps"] or None,
        metadata=metadata,
        **rest,
    )
