"""Figures, texts and curves as people read them, in a terminal or on a page."""

from shoal._formatting.numbers import (
    count,
    duration,
    number,
    percent,
    printable,
    share_of,
    short_time,
    size,
    speed,
)
from shoal._formatting.sparkline import Sparkline, draw_line

__all__ = [
    "Sparkline",
    "count",
    "draw_line",
    "duration",
    "number",
    "percent",
    "printable",
    "share_of",
    "short_time",
    "size",
    "speed",
]
