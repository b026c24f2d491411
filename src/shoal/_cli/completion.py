"""What the shell offers when a user presses the tabulator key.

This runs at each press, so nothing slow is imported. Where there is nothing to offer, the shell
offers files.
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
"""Where runs of training are, unless the user says otherwise."""

_SCRIPTED = ("weak", "strong")
_AGENT = ".agent"


def environments(incomplete: str) -> list[str]:
    """Ids of environments; the newest versions, unless only older ones fit."""
    from shoal._envs.catalogue import known_envs

    known = known_envs()
    newest = _beginning(incomplete, (env.id for env in known if not env.is_old))
    return newest or _beginning(incomplete, (env.id for env in known))


def configs(incomplete: str) -> list[str]:
    """Configs of training that come along, and JSON files."""
    return [*_beginning(incomplete, _shipped_configs()), *_paths(incomplete, ".json")]


def runs(incomplete: str) -> list[str]:
    """Folders of training runs."""
    usual = (path.parent for path in RUNS.glob("*/run.json"))
    # Another folder that has begun to be written out may hold runs as well.
    here = (path.parent for path in _parent(incomplete).glob("*/run.json"))
    return _beginning(incomplete, sorted({str(path) for path in (*usual, *here)}))


def agents(incomplete: str) -> list[str]:
    """Runs, and files of agents."""
    return [*runs(incomplete), *_paths(incomplete, _AGENT)]


def players(incomplete: str) -> list[str]:
    """Who can play hockey: scripted players, and agents."""
    return [*_beginning(incomplete, _SCRIPTED), *agents(incomplete)]


def watchable(incomplete: str) -> list[str]:
    """What can be watched: environments, runs, and files of agents."""
    return [*environments(incomplete), *agents(incomplete)]


def backends(incomplete: str) -> list[str]:
    """What steps a vector."""
    from shoal._options import Backend

    return _beginning(incomplete, (name for part in get_args(Backend) for name in get_args(part)))


def peers(incomplete: str) -> list[str]:
    """The libraries to measure besides, the last of those that are typed with commas between."""
    from shoal._bench.contender_selection import PEERS

    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    names = [name for name in PEERS if name not in chosen] if comma else [*PEERS, "none"]
    return [f"{before}{comma}{name}" for name in _beginning(last, names)]


def _shipped_configs() -> list[str]:
    try:
        from shoal.train._config.loading import SHIPPED
    except ImportError:  # training needs an extra, and its configs are of no use without it
        return []
    return sorted(file.stem for file in SHIPPED.glob("*.json"))


def _paths(incomplete: str, suffix: str) -> list[str]:
    """Files with this suffix, and folders on the way to others, that what is typed leads to."""
    folder = _parent(incomplete)
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    files = (str(path) for path in found if path.suffix == suffix)
    folders = (f"{path}/" for path in found if path.is_dir() and not (path / "run.json").exists())
    return _beginning(incomplete, sorted((*files, *folders))) if incomplete else sorted(files)


def _parent(incomplete: str) -> Path:
    """The folder of what is typed so far."""
    return Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
