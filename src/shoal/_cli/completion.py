"""Shell completion: candidates for arguments and options.

The shell runs this on every press of Tab, so slow modules are not imported. If there is no
candidate, the shell completes file names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

__all__ = [
    "RUNS",
    "agents",
    "backends",
    "configs",
    "environments",
    "peers",
    "players",
    "runs",
    "watchable",
]

RUNS = Path("results/runs")
"""The default folder of training runs."""

_SCRIPTED = ("weak", "strong")
_AGENT = ".agent"


def environments(incomplete: str) -> list[str]:
    """Return matching environment ids; old versions only if no newest version matches."""
    from shoal._envs.catalogue import known_envs

    known = known_envs()
    newest = _matching(incomplete, (env.id for env in known if not env.is_old))
    return newest or _matching(incomplete, (env.id for env in known))


def configs(incomplete: str) -> list[str]:
    """Return matching names of bundled training configs, and JSON files."""
    return [*_matching(incomplete, _shipped_configs()), *_paths(incomplete, ".json")]


def runs(incomplete: str) -> list[str]:
    """Return matching folders of training runs."""
    default = (path.parent for path in RUNS.glob("*/run.json"))
    # Also look for runs in the folder that has been typed so far.
    typed = (path.parent for path in _parent(incomplete).glob("*/run.json"))
    return _matching(incomplete, sorted({str(path) for path in (*default, *typed)}))


def agents(incomplete: str) -> list[str]:
    """Return matching runs and agent files."""
    return [*runs(incomplete), *_paths(incomplete, _AGENT)]


def players(incomplete: str) -> list[str]:
    """Return matching hockey players: scripted players and agents."""
    return [*_matching(incomplete, _SCRIPTED), *agents(incomplete)]


def watchable(incomplete: str) -> list[str]:
    """Return matching environments, runs and agent files."""
    return [*environments(incomplete), *agents(incomplete)]


def backends(incomplete: str) -> list[str]:
    """Return matching backends."""
    from shoal._options import Backend

    return _matching(incomplete, (name for part in get_args(Backend) for name in get_args(part)))


def peers(incomplete: str) -> list[str]:
    """Return completions of the last name in a comma-separated list of libraries."""
    from shoal._bench.contender_selection import PEERS

    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    names = [name for name in PEERS if name not in chosen] if comma else [*PEERS, "none"]
    return [f"{before}{comma}{name}" for name in _matching(last, names)]


def _shipped_configs() -> list[str]:
    try:
        from shoal.train._config.loading import SHIPPED
    except ImportError:  # the training extra is not installed
        return []
    return sorted(file.stem for file in SHIPPED.glob("*.json"))


def _paths(incomplete: str, suffix: str) -> list[str]:
    """Return matching files with this suffix, and folders that may contain some."""
    folder = _parent(incomplete)
    if not folder.is_dir():
        return []
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    files = (str(path) for path in entries if path.suffix == suffix)
    folders = (f"{path}/" for path in entries if path.is_dir() and not (path / "run.json").exists())
    return _matching(incomplete, sorted((*files, *folders))) if incomplete else sorted(files)


def _parent(incomplete: str) -> Path:
    """Return the folder of the path that has been typed so far."""
    return Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent


def _matching(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
