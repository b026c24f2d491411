"""The requests that a contender's process handles."""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from shoal._bench.contenders.base import Contender, Vector

__all__ = ["Session"]

_WARM_UP_SECONDS = 0.05
_WARM_UP_SHARE = 0.1


class Session:
    """Steps a contender's environments. At most one vector is open at a time."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._vector: Vector | None = None
        self.requests: dict[str, Callable[..., Any]] = {
            "versions": self.versions,
            "open": self.open,
            "step": self.step,
            "close": self.close,
        }

    def versions(self) -> dict[str, str]:
        """Return the versions of Python and of the contender's packages."""
        packages = {package: version(package) for package in self._contender.packages}
        return {"python": platform.python_version(), **packages}

    def open(self, workload: str, num_envs: int) -> str:
        """Create the vector, step it briefly, and return its note.

        ``workload`` is a pickle in hexadecimal digits.
        """
        self._vector = self._contender.open(pickle.loads(bytes.fromhex(workload)), num_envs)
        self._vector.step_many(_WARM_UP_SECONDS)
        return self._vector.note

    def step(self, seconds: float) -> tuple[int, float]:
        """Step the open vector; return the environment steps and the seconds that they took.

        Other contenders ran since the last request, so an uncounted warm-up comes first: it refills
        caches and wakes workers.
        """
        if self._vector is None:
            raise RuntimeError("no vector is open")
        self._vector.step_many(seconds * _WARM_UP_SHARE)
        return self._vector.step_many(seconds)

    def close(self) -> None:
        """Close the vector if one is open."""
        if self._vector is not None:
            vector, self._vector = self._vector, None
            vector.close()
