"""The colours, the matplotlib style and the number format of all plots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal._formatting import printable

__all__ = ["FAINT", "INK", "PALETTE", "STYLE", "colours_of", "compact", "short"]

INK, FAINT = "#2b303a", "#8b93a1"
PALETTE = (
    "#2f6fb3",
    "#e07b39",
    "#3a9a6a",
    "#c44e52",
    "#7b62a8",
    "#2a9ba8",
    "#c9a227",
    "#c96a9c",
    "#8a6d4f",
    "#5b6b8c",
)
STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": "#b9c0ca",
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dfe3e9",
    "grid.linewidth": 0.7,
    "xtick.color": "#b9c0ca",
    "ytick.color": "#b9c0ca",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
}
_MAX_NAME_LENGTH = 26


def compact(value: float, _position: int | None = None) -> str:
    """Return a number as a short tick label.

    Example:
        >>> compact(0), compact(1500), compact(2_000_000), compact(0.25)
        ('0', '1.5k', '2M', '0.25')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1000 * 1e9:
            return f"{value / size:.4g}{suffix}"
    return f"{value:.4g}"


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name; a faint grey for those beyond the palette."""
    unique = dict.fromkeys(names)
    return {
        name: PALETTE[index] if index < len(PALETTE) else FAINT for index, name in enumerate(unique)
    }


def short(name: str) -> str:
    """Return a name on one line, shortened if it is too long."""
    shown = printable(name)
    return shown if len(shown) <= _MAX_NAME_LENGTH else shown[: _MAX_NAME_LENGTH - 1] + "…"
