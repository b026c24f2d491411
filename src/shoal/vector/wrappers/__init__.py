"""Drop-in replacements for ``gymnasium.wrappers.vector`` that support all autoreset modes.

They wrap Shoal's vectors and any other ``gymnasium.vector.VectorEnv``. Differences from Gymnasium's
wrappers:

- Observation wrappers support SAME_STEP, where they also transform ``final_obs``.
- ``call``, ``get_attr`` and ``set_attr`` reach the environments through the wrapper.
- A reset of some slots by ``options["reset_mask"]`` does not affect the statistics of the others.
- Statistics and stacks can be saved and loaded.
- :class:`FrameStackObservation` is added.
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
    # The conversions need an extra of Gymnasium, so they are imported on first access.
    if name in _CONVERSIONS:
        from shoal.vector.wrappers import _array_conversion

        return getattr(_array_conversion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
