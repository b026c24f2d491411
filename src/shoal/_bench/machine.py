"""On what a run ran."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["core_count", "describe", "use_cores"]


def describe() -> dict[str, Any]:
    """Describe this machine at this moment, as plain data."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": core_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def core_count() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def use_cores(count: int) -> None:
    """Keep this process, and those that it will start, to so many of the cores that it may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
