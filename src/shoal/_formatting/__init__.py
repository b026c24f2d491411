"""Figures, texts and curves as people read them, in a terminal or on a page."""

from shoal._formatting.numbers import (
    clamp_share,
    count,
    duration,
    number,
    percent,
    printable,
    short_time,
    size,
    speed,
)
from shoal._formatting.sparkline import Sparkline, draw_line

__all__ = [
    "Sparkline",
    "clamp_share",
    "count",
    "draw_line",
    "duration",
    "number",
    "percent",
    "printable",
    "short_time",
    "size",
    "speed",
]
