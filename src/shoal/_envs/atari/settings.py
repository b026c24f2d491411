"""The settings of a game and their validation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Real
from operator import index
from typing import Any, Literal, get_args

import numpy as np

from shoal.errors import InvalidSettingError

__all__ = ["GameSettings", "ObservationType", "Padding"]

_MAX_COUNT = 10_000
_MAX_FRAMES = 2**31 - 1

ObservationType = Literal["grayscale", "rgb", "ram"]
Padding = Literal["zero", "reset"]


@dataclass(frozen=True)
class GameSettings:
    """The settings of one slot; :class:`shoal.atari.AtariVectorEnv` documents them.

    ``game`` is the name in ale-py's spelling.
    """

    game: str
    mode: int | None = None
    difficulty: int | None = None
    obs_type: ObservationType = "grayscale"
    img_height: int = 84
    img_width: int = 84
    stack_num: int = 4
    padding: Padding = "zero"
    frameskip: int = 4
    maxpool: bool = True
    noop_max: int = 30
    use_fire_reset: bool = True
    episodic_life: bool = False
    life_loss_info: bool = False
    reward_clipping: bool = True
    unclipped_reward: bool = False
    max_num_frames_per_episode: int | None = 108_000
    repeat_action_probability: float = 0.0
    full_action_space: bool = False
    continuous: bool = False
    continuous_action_threshold: float = 0.5

    def __post_init__(self) -> None:
        for name, choices in (("obs_type", ObservationType), ("padding", Padding)):
            if getattr(self, name) not in get_args(choices):
                raise InvalidSettingError(
                    f"{name} must be one of {get_args(choices)}, got {getattr(self, name)!r}"
                )
        for name in ("img_height", "img_width", "stack_num", "frameskip"):
            self._check_count(name, 1, _MAX_COUNT)
        self._check_count("noop_max", 0, _MAX_COUNT)
        if self.max_num_frames_per_episode is not None:
            self._check_count("max_num_frames_per_episode", 1, _MAX_FRAMES)
        for name in ("mode", "difficulty"):
            if getattr(self, name) is not None:
                self._check_count(name, 0, _MAX_COUNT)
        for field in fields(self):
            if field.type == "bool":
                self._check_flag(field.name)
        for name in ("repeat_action_probability", "continuous_action_threshold"):
            self._check_fraction(name)

    def _check_count(self, name: str, minimum: int, maximum: int) -> None:
        value: Any = getattr(self, name)
        is_integer = hasattr(value, "__index__") and not isinstance(value, bool)
        if not is_integer or not minimum <= index(value) <= maximum:
            raise InvalidSettingError(
                f"{name} must be an integer from {minimum} to {maximum}, got {value!r}"
            )
        object.__setattr__(self, name, index(value))

    def _check_flag(self, name: str) -> None:
        value: Any = getattr(self, name)
        if not isinstance(value, bool | np.bool_):
            raise InvalidSettingError(f"{name} must be True or False, got {value!r}")
        object.__setattr__(self, name, bool(value))

    def _check_fraction(self, name: str) -> None:
        value: Any = getattr(self, name)
        number = float(value) if isinstance(value, Real) else -1.0
        if not 0.0 <= number <= 1.0:
            raise InvalidSettingError(f"{name} must be a number from 0 to 1, got {value!r}")
        object.__setattr__(self, name, number)
