"""``shoal envs``: list the environments that can be created by id."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium
import typer
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal._cli import completion
from shoal._cli.output import AsJson, print_error, print_json

if TYPE_CHECKING:
    from shoal._envs.catalogue import KnownEnv

__all__ = ["envs"]

_ATARI_INSTALL = 'pip install "shoal[atari]"'


@dataclass(frozen=True)
class _Spaces:
    """Descriptions of an environment's spaces, or the reason why they are not known."""

    observation_space: str | None = None
    action_space: str | None = None
    problem: str | None = None


def envs(
    text: Annotated[
        str,
        typer.Argument(
            help="Part of an id; case and punctuation are ignored.",
            autocompletion=completion.environments,
        ),
    ] = "",
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Only environments with a native kernel.")
    ] = False,
    installed: Annotated[
        bool, typer.Option("--installed", help="Only environments whose packages are installed.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Include old versions and deprecated ids.")
    ] = False,
    spaces: Annotated[
        bool, typer.Option("--spaces", help="Show the spaces of all; creates each environment.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the available environments, and how they are stepped."""
    from shoal._envs.catalogue import known_envs

    known = [
        env
        for env in known_envs()
        if (env.stepped_by == "kernel" or not kernels) and not (installed and env.needs)
    ]
    matching = [env for env in known if _normalized(text) in _normalized(env.id)]
    newest = [env for env in matching if everything or not env.is_old]
    chosen = newest or (matching if text else [])
    if not chosen:
        print_error(_no_match(text, known))
        raise typer.Exit(1)
    order = ("kernel", "python", "atari")
    chosen.sort(key=lambda env: (order.index(env.stepped_by), env.needs or ""))
    spaces_by_id = _spaces_of(chosen, spaces)
    if as_json:
        listed = [asdict(env) | asdict(spaces_by_id.get(env.id, _Spaces())) for env in chosen]
        print_json({"environments": listed, "atari": _has_atari()})
    else:
        _show(chosen, spaces_by_id)
        if not (_has_atari() or text or kernels):
            console = Console(highlight=False, markup=False)
            console.print(f"\nFor Atari games: {_ATARI_INSTALL}")


def _no_match(text: str, known: Sequence[KnownEnv]) -> str:
    """Return the error message for a text that matches no id, with similar ids."""
    names: dict[str, str] = {}
    for env in known:
        for name in (env.id, env.id.rpartition("/")[2]):
            if not env.is_old:
                names.setdefault(_normalized(name), env.id)
    matches = get_close_matches(_normalized(text), names, cutoff=0.5)
    similar = dict.fromkeys(names[name] for name in matches)
    hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
    missing = "" if _has_atari() else f" (Atari games need {_ATARI_INSTALL})"
    return f"no environment id matches {text!r}{hint}{missing}"


def _normalized(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _has_atari() -> bool:
    return "ALE/Pong-v5" in gymnasium.registry


def _spaces_of(known: Sequence[KnownEnv], is_complete: bool) -> dict[str, _Spaces]:
    """Return the spaces of environments with a kernel, or of all that are installed."""
    chosen = [env for env in known if env.stepped_by == "kernel" or (is_complete and not env.needs)]
    spaces = {}
    with Console(stderr=True).status("Creating environments ...") as status:
        for env in chosen:
            status.update(f"Creating {env.id} ...")
            spaces[env.id] = _spaces(env.id)
    return spaces


def _spaces(name: str) -> _Spaces:
    import shoal

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about a newer version
        try:
            envs = shoal.make(name, num_envs=1)
        except Exception as error:  # constructors may raise anything
            first, *_ = str(error).splitlines() or [repr(error)]
            return _Spaces(problem=first)
        with envs:
            return _Spaces(_space(envs.single_observation_space), _space(envs.single_action_space))


def _space(space: gymnasium.Space[Any]) -> str:
    """Return a short description of a space.

    >>> from gymnasium import spaces
    >>> _space(spaces.Box(0, 1, (4,))), _space(spaces.Discrete(3))
    ('Box(4,) float32', 'Discrete(3)')
    >>> _space(spaces.Dict(pose=spaces.Box(0, 1, (4,))))
    'Dict(pose: Box(4,) float32)'
    """
    if isinstance(space, gymnasium.spaces.Box):
        return f"Box{space.shape} {space.dtype}"
    if isinstance(space, gymnasium.spaces.Dict):
        return f"Dict({', '.join(f'{key}: {_space(part)}' for key, part in space.items())})"
    if isinstance(space, gymnasium.spaces.Tuple):
        return f"Tuple({', '.join(map(_space, space))})"
    return str(space)


def _show(chosen: Sequence[KnownEnv], spaces_by_id: dict[str, _Spaces]) -> None:
    """Print a section for each way of stepping, and for each missing package."""
    console = Console(highlight=False)
    titles = {
        "kernel": "with a native kernel",
        "python": "stepped in Python",
        "atari": "stepped by Shoal's Atari vectors",
    }
    sections: dict[str, list[KnownEnv]] = {}
    for env in chosen:
        title = titles[env.stepped_by] if env.needs is None else _missing(env.needs)
        sections.setdefault(title, []).append(env)
    first = next(iter(sections))
    for title, members in sections.items():
        if title != first:
            console.print()
        console.print(Text(f"{len(members)} {title}", style="bold"))
        if all(env.id in spaces_by_id for env in members):
            content: RenderableType = _table(members, spaces_by_id)
        else:
            content = Columns([Text(env.id) for env in members], column_first=True, padding=(0, 2))
        console.print(Padding(content, (0, 0, 0, 2), expand=False))


def _missing(needs: str) -> str:
    is_extra = "[" in needs
    return f'more after pip install "{needs}"' if is_extra else f"more, if {needs} is installed"


def _table(members: Sequence[KnownEnv], spaces_by_id: dict[str, _Spaces]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("id", no_wrap=True)
    for column in ("observations", "actions"):
        table.add_column(column)
    for env in members:
        spaces = spaces_by_id[env.id]
        if spaces.problem is None:
            table.add_row(env.id, Text(spaces.observation_space or ""), spaces.action_space or "")
        else:
            table.add_row(env.id, Text(f"cannot be created: {spaces.problem}", style="yellow"))
    return table
