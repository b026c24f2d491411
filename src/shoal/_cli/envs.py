"""``shoal envs``: which environments can be made here by name."""

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
    """The spaces of an environment, in words, or why they are not known."""

    observation_space: str | None = None
    action_space: str | None = None
    problem: str | None = None


def envs(
    text: Annotated[
        str,
        typer.Argument(
            help="A part of the names that are wanted; case does not matter.",
            autocompletion=completion.environments,
        ),
    ] = "",
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Those with a native kernel only.")
    ] = False,
    installed: Annotated[
        bool, typer.Option("--installed", help="Those only that need nothing else.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Old versions and old names, too.")
    ] = False,
    spaces: Annotated[
        bool, typer.Option("--spaces", help="Make each of them, to tell its spaces.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the environments that there are, and what steps them."""
    from shoal._envs.catalogue import known_envs

    known = [
        env
        for env in known_envs()
        if (env.stepped_by == "kernel" or not kernels) and not (installed and env.needs)
    ]
    matching = [env for env in known if _plain(text) in _plain(env.id)]
    newest = [env for env in matching if everything or not env.is_old]
    chosen = newest or (matching if text else [])
    if not chosen:
        print_error(_nothing(text, known))
        raise typer.Exit(1)
    order = ("kernel", "python", "atari")
    chosen.sort(key=lambda env: (order.index(env.stepped_by), env.needs or ""))
    told = _spaces_of(chosen, spaces)
    if as_json:
        listed = [asdict(env) | asdict(told.get(env.id, _Spaces())) for env in chosen]
        print_json({"environments": listed, "atari": _has_atari()})
    else:
        _tell(chosen, told)
        if not (_has_atari() or text or kernels):
            console = Console(highlight=False, markup=False)
            console.print(f"\nThe games of Atari: {_ATARI_INSTALL}")


def _nothing(text: str, known: Sequence[KnownEnv]) -> str:
    """Says that there is no such environment, and which are called alike."""
    names: dict[str, str] = {}
    for env in known:
        for name in (env.id, env.id.rpartition("/")[2]):
            if not env.is_old:
                names.setdefault(_plain(name), env.id)
    near = dict.fromkeys(names[name] for name in get_close_matches(_plain(text), names, cutoff=0.5))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    missing = "" if _has_atari() else f" (Atari games need {_ATARI_INSTALL})"
    return f"no environment is called anything like {text!r}{hint}{missing}"


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _has_atari() -> bool:
    return "ALE/Pong-v5" in gymnasium.registry


def _spaces_of(known: Sequence[KnownEnv], wanted: bool) -> dict[str, _Spaces]:
    """The spaces of those that are made in a moment, or of all."""
    chosen = [env for env in known if env.stepped_by == "kernel" or (wanted and not env.needs)]
    told = {}
    with Console(stderr=True).status("Making environments ...") as status:
        for env in chosen:
            status.update(f"Making {env.id} ...")
            told[env.id] = _spaces(env.id)
    return told


def _spaces(name: str) -> _Spaces:
    import shoal

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that there is a newer version
        try:
            made = shoal.make(name, num_envs=1)
        except Exception as error:  # whatever somebody's constructor raises
            first, *_ = str(error).splitlines() or [repr(error)]
            return _Spaces(problem=first)
        with made:
            return _Spaces(_space(made.single_observation_space), _space(made.single_action_space))


def _space(space: gymnasium.Space[Any]) -> str:
    """A space in a few words.

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


def _tell(chosen: Sequence[KnownEnv], told: dict[str, _Spaces]) -> None:
    """A section for each way to step them, and for each thing that is missing."""
    console = Console(highlight=False)
    titles = {
        "kernel": "with a native kernel",
        "python": "stepped in Python",
        "atari": "stepped by Shoal's Atari vectors",
    }
    sections: dict[str, list[KnownEnv]] = {}
    for env in chosen:
        title = titles[env.stepped_by] if env.needs is None else _lack(env.needs)
        sections.setdefault(title, []).append(env)
    first = next(iter(sections))
    for title, members in sections.items():
        if title != first:
            console.print()
        console.print(Text(f"{len(members)} {title}", style="bold"))
        if all(env.id in told for env in members):
            content: RenderableType = _table(members, told)
        else:
            content = Columns([Text(env.id) for env in members], column_first=True, padding=(0, 2))
        console.print(Padding(content, (0, 0, 0, 2), expand=False))


def _lack(needs: str) -> str:
    is_extra = "[" in needs
    return f'more after pip install "{needs}"' if is_extra else f"more where there is {needs}"


def _table(members: Sequence[KnownEnv], told: dict[str, _Spaces]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("id", no_wrap=True)
    for column in ("observations", "actions"):
        table.add_column(column)
    for env in members:
        spaces = told[env.id]
        if spaces.problem is None:
            table.add_row(env.id, Text(spaces.observation_space or ""), spaces.action_space or "")
        else:
            table.add_row(env.id, Text(f"cannot be made: {spaces.problem}", style="yellow"))
    return table
