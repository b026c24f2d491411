"""Format numbers for display, in the same way everywhere."""

from __future__ import annotations

import math

__all__ = [
    "clamp_share",
    "count",
    "duration",
    "number",
    "percent",
    "printable",
    "short_time",
    "size",
    "speed",
]

_NO_VALUE = "-"


def count(value: float) -> str:
    """Format a whole number.

    Example:
        >>> count(1234567)
        '1,234,567'
    """
    return f"{value:,.0f}"


def number(value: float | None) -> str:
    """Format a number of any magnitude with about four digits.

    Example:
        >>> number(0.123456), number(-12345.6), number(2.5e-07), number(None)
        ('0.1235', '-12,346', '2.5e-07', '-')
    """
    if value is None:
        return _NO_VALUE
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """Format a fraction as a percentage.

    Example:
        >>> percent(0.5731)
        '57.3%'
    """
    return _NO_VALUE if share is None else f"{share:.1%}"


def speed(per_second: float) -> str:
    """Format a rate per second.

    Example:
        >>> speed(12345.6), speed(3.14159)
        ('12,346', '3.14')
    """
    return f"{per_second:,.0f}" if abs(per_second) >= 100 else f"{per_second:.3g}"


def duration(seconds: float | None) -> str:
    """Format a duration with its two largest units.

    Example:
        >>> duration(45), duration(200), duration(4000), duration(90000)
        ('45 s', '3 min 20 s', '1 h 06 min', '1 d 01 h')
    """
    if seconds is None or not math.isfinite(seconds):
        return _NO_VALUE
    whole = max(0, round(seconds))
    for unit, smaller_unit, length, smaller in (
        ("d", "h", 86400, 3600),
        ("h", "min", 3600, 60),
        ("min", "s", 60, 1),
    ):
        if whole >= length:
            units, rest = divmod(whole, length)
            return f"{units} {unit} {rest // smaller:02d} {smaller_unit}"
    return f"{whole} s"


def short_time(seconds: float | None) -> str:
    """Format a duration that may be shorter than a second.

    Example:
        >>> short_time(2.31e-6), short_time(0.00123), short_time(0.5), short_time(7e-9)
        ('2.31 us', '1.23 ms', '500 ms', '7 ns')
    """
    if seconds is None:
        return _NO_VALUE
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def size(count: int | None) -> str:
    """Format a number of bytes.

    Example:
        >>> size(143), size(28_355), size(25_233_981_440), size(None)
        ('143 B', '27.7 KiB', '23.5 GiB', '-')
    """
    if count is None:
        return _NO_VALUE
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def clamp_share(value: float) -> float:
    """Return ``value`` limited to the range 0 to 1."""
    return min(1.0, max(0.0, value))


def printable(text: str, encoding: str = "utf-8") -> str:
    r"""Replace characters that a terminal cannot print safely, or that ``encoding`` lacks.

    Example:
        >>> printable("weak \x1b[31m", "ascii"), printable("flöte", "ascii")
        ('weak ?[31m', 'fl?te')
    """
    safe = "".join(char if char.isprintable() else "?" for char in text)
    return safe.encode(encoding, "replace").decode(encoding)
