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
"""The libraries that this process has loaded, and which versions of them."""


def include_dir() -> str:
    """The folder of ``shoal_kernel.h``, for the compiler's ``-I``."""
    return str(Path(__file__).parents[1] / "include")


def load(path: str | Path, *, check_nan: bool = True) -> Kernel:
    """Load a kernel from a shared library.

    Args:
        path: The library. It must export ``shoal_kernel_entry``; see ``shoal_kernel.h``.
        check_nan: Whether a NaN in an observation or a reward is reported as a failure.

    Raises:
        OSError: There is no such library, or the system cannot load it.
        KernelDefinitionError: It has no kernel, or one that does not fit this version.
    """
    library = ctypes.CDLL(str(_loadable(Path(path).resolve(strict=True))))
    try:
        entry = getattr(library, _ENTRY)
    except AttributeError:
        raise KernelDefinitionError(
            f"{path} exports no function {_ENTRY}: see shoal_kernel.h (in C++ it must be "
            'extern "C")'
        ) from None
    entry.argtypes, entry.restype = (), ctypes.c_void_p
    recipe = partial(load, Path(path).resolve(), check_nan=check_nan)
    try:
        native = _native.Kernel.at(entry() or 0, library)
        return _described(native, check_nan=check_nan, recipe=recipe)
    except KernelDefinitionError as error:
        raise KernelDefinitionError(f"{path}: {error}") from None


def _loadable(library: Path) -> Path:
    """The library itself, or, if another one of its name was loaded before, a copy of it.

    The system would give back what it has loaded under that name, although the file has changed.
    """
    status = library.stat()
    version = status.st_ino, status.st_mtime_ns
    if _LOADED.setdefault(library, version) == version:
        return library
    folder = Path(tempfile.mkdtemp(prefix="shoal-kernel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copy(library, folder))


def _described(native: _native.Kernel, **rest: Any) -> Kernel:
    """A kernel whose spaces are what it says of itself."""
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
