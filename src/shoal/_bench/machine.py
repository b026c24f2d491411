"""A description of the machine that a benchmark runs on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["core_count", "describe", "use_cores"]


def describe() -> dict[str, Any]:
    """Return a description of this machine and the date, as plain data."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": core_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def use_cores(count: int) -> None:
    """Restrict this process, and its future children, to the first ``count`` usable cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
