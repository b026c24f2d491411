"""Figures, texts and curves as people read them, in a terminal or on a page."""

from shoal.wording.numbers import (
    count,
    duration,
    number,
    percent,
    printable,
    share_of,
    speed,
)
from shoal.wording.sparkline import Sparkline

__all__ = [
    "Sparkline",
    "count",
    "duration",
    "number",
    "percent",
    "printable",
    "share_of",
    "speed",
]
