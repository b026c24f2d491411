"""Gymnasium's vector wrappers, for all autoreset modes: ``gymnasium.wrappers.vector``'s names.

They go around Shoal's vectors and around any other ``gymnasium.vector.VectorEnv``. What they have
over Gymnasium's: observation wrappers also work where slots are reset in the same step, and then
transform ``final_obs`` too; ``call``, ``get_attr`` and ``set_attr`` reach through; a reset of some
slots by ``options["reset_mask"]`` leaves the statistics of the others alone; statistics and stacks
can be saved and loaded; and there is a :class:`FrameStackObservation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.vector.wrappers._actions import (
    ClipAction,
    RescaleAction,
    TransformAction,
    VectorizeTransformAction,
)
from shoal.vector.wrappers._base import (
    VectorActionWrapper,
    VectorObservationWrapper,
    VectorRewardWrapper,
    VectorWrapper,
)
from shoal.vector.wrappers._frame_stack import FrameStackObservation
from shoal.vector.wrappers._human_rendering import HumanRendering
from shoal.vector.wrappers._infos import DictInfoToList
from shoal.vector.wrappers._normalize import NormalizeObservation, NormalizeReward
from shoal.vector.wrappers._observations import (
    DtypeObservation,
    FilterObservation,
    FlattenObservation,
    GrayscaleObservation,
    RescaleObservation,
    ReshapeObservation,
    ResizeObservation,
    TransformObservation,
    VectorizeTransformObservation,
)
from shoal.vector.wrappers._rewards import ClipReward, TransformReward, VectorizeTransformReward
from shoal.vector.wrappers._statistics import RecordEpisodeStatistics
from shoal.vector.wrappers._video import RecordVideo

if TYPE_CHECKING:
    from shoal.vector.wrappers._array_conversion import (
        ArrayConversion,
        JaxToNumpy,
        JaxToTorch,
        NumpyToTorch,
    )

__all__ = [
    "ArrayConversion",
    "ClipAction",
    "ClipReward",
    "DictInfoToList",
    "DtypeObservation",
    "FilterObservation",
    "FlattenObservation",
    "FrameStackObservation",
    "GrayscaleObservation",
    "HumanRendering",
    "JaxToNumpy",
    "JaxToTorch",
    "NormalizeObservation",
    "NormalizeReward",
    "NumpyToTorch",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RescaleAction",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
    "TransformAction",
    "TransformObservation",
    "TransformReward",
    "VectorActionWrapper",
    "VectorObservationWrapper",
    "VectorRewardWrapper",
    "VectorWrapper",
    "VectorizeTransformAction",
    "VectorizeTransformObservation",
    "VectorizeTransformReward",
]

_CONVERSIONS = ("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch")


def __getattr__(name: str) -> Any:
    # What the conversions need is an extra of Gymnasium's, so they are loaded when asked for.
    if name in _CONVERSIONS:
        from shoal.vector.wrappers import _array_conversion

        return getattr(_array_conversion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
