"""Format numbers, text and curves for terminals and pages."""

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
