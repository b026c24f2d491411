"""The options of a vector, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from gymnasium.vector import AutoresetMode

from shoal.spaces import ObservationMode
from shoal.vector.infos import InfoFormat
from shoal.vector.seeding import Seeding

__all__ = ["Backend", "VectorOptions"]

Backend = Literal["auto", "inline"]


@dataclass
class VectorOptions:
    """What :func:`shoal.make` takes besides the environments; its docstring explains each.

    >>> VectorOptions(statistics=True, autoreset_mode="SameStep").changed()
    {'autoreset_mode': <AutoresetMode.SAME_STEP: 'SameStep'>, 'statistics': True}
    """

    backend: Backend = "auto"
    autoreset_mode: AutoresetMode | str | None = None
    copy: bool = True
    observation_mode: ObservationMode = "same"
    statistics: bool = False
    info_format: InfoFormat = "dict"
    seeding: Seeding = "adjacent"

    def __post_init__(self) -> None:
        for name, choices in (
            ("backend", Backend),
            ("info_format", InfoFormat),
            ("seeding", Seeding),
        ):
            if getattr(self, name) not in get_args(choices):
                raise ValueError(
                    f"{name} must be one of {get_args(choices)}, got {getattr(self, name)!r}"
                )
        if self.autoreset_mode is not None:
            self.autoreset_mode = AutoresetMode(self.autoreset_mode)
            # Before Gymnasium 1.0 there was no other mode, and its infos speak of no other.
            same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
            if self.info_format == "pre-1.0" and not same_step:
                raise ValueError(
                    "info_format='pre-1.0' goes with autoreset_mode=AutoresetMode.SAME_STEP, "
                    f"got {self.autoreset_mode}"
                )

    @property
    def mode(self) -> AutoresetMode:
        """The autoreset mode, or what it is where the user did not say."""
        if self.autoreset_mode is not None:
            return AutoresetMode(self.autoreset_mode)
        if self.info_format == "pre-1.0":
            return AutoresetMode.SAME_STEP
        return AutoresetMode.NEXT_STEP

    def changed(self) -> dict[str, Any]:
        """Those options that are not at their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
