"""``shoal watch``: environments as they are stepped, and films of what an agent does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import typer
from gymnasium.envs.registration import ENV_ID_RE
from rich.console import Console

from shoal._cli import completion
from shoal._cli.env_lookup import is_env_id, load_target, parse_env_args, require_path
from shoal._cli.output import (
    AsJson,
    print_json,
    print_line,
    print_status,
    report_user_errors,
    stdout_reserved_for_json,
)
from shoal._cli.page_options import Host, Port, Web
from shoal._cli.watch_screen import Screen
from shoal.live._attach import DEFAULT_PICTURE_SHARE, attach
from shoal.live._env_loop import Policy, make_vector, random_policy, run_loop
from shoal.live._live_page import LivePage
from shoal.live._watcher import DEFAULT_REFRESH, Watcher

__all__ = ["watch"]

_OF_A_RUN = "For an agent"
_PACED_SHARE, _PACED_REFRESH = 0.5, 0.25
"""Where there is time to spare: which part of it is for pictures, and seconds between states."""


def watch(
    what: Annotated[
        str,
        typer.Argument(
            help="An environment: its id, module:factory or file.py:Class. Or a run, or the file "
            "of an agent, of which a video is made.",
            autocompletion=completion.watchable,
        ),
    ],
    num_envs: Annotated[int, typer.Option(min=1, help="How many.")] = 16,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    speed: Annotated[
        float | None,
        typer.Option(min=0.01, help="Times real time; as fast as can be by default."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="End after so long.")] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="module:function, from observations of all slots to actions; by default random."
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="As in shoal.make.", autocompletion=completion.backends)
    ] = "auto",
    workers: Annotated[int | None, typer.Option(min=0, help="As in shoal.make.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="A crash costs its slots one episode.")
    ] = False,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, an argument of the environment. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(help="The video; by default in the run.", rich_help_panel=_OF_A_RUN),
    ] = None,
    opponent: Annotated[
        str,
        typer.Option(
            help="In hockey: weak, strong, or an agent.",
            rich_help_panel=_OF_A_RUN,
            autocompletion=completion.players,
        ),
    ] = "strong",
    episodes: Annotated[int, typer.Option(min=1, help="How many.", rich_help_panel=_OF_A_RUN)] = 3,
    env: Annotated[
        str | None,
        typer.Option(
            help="The environment; that of the run, or hockey.",
            rich_help_panel=_OF_A_RUN,
            autocompletion=completion.environments,
        ),
    ] = None,
) -> None:
    """Show environments live, or film an agent."""
    if _is_agent(what):
        with report_user_errors():
            _film(Path(what), output, opponent, episodes, env, seed, as_json)
        return
    options: dict[str, Any] = {"backend": backend, "workers": workers}
    if restart:
        options["on_crash"] = "restart"
    watcher = Watcher(what, refresh=DEFAULT_REFRESH if speed is None else _PACED_REFRESH)
    with report_user_errors(), ExitStack() as opened:
        arguments = parse_env_args(env_arg or [])
        page = opened.enter_context(LivePage(watcher, host, port)) if web else None
        envs = opened.enter_context(
            make_vector(load_target(what), num_envs, options, arguments, with_pictures=web)
        )
        acting = _policy(policy) if policy else random_policy(envs, seed)
        rate = None if speed is None else speed * float(envs.metadata.get("render_fps", 30))
        share = DEFAULT_PICTURE_SHARE if rate is None else _PACED_SHARE
        if page is None:
            attach(watcher, envs, share)
        else:
            page.watch(envs, share)
            (print_status if as_json else print_line)(f"Watch at {page.url}")
        screen = opened.enter_context(
            Screen(Console(stderr=as_json), None if page is None else page.url)
        )

        def look() -> None:
            if screen.is_due:
                screen.show(watcher.state(screen.newest_entry))

        began = time.perf_counter()
        with suppress(KeyboardInterrupt), _named_if_refused(policy):
            run_loop(envs, acting, seed=seed, seconds=seconds, rate=rate, look=look)
        took = time.perf_counter() - began
    screen.sum_up(watcher.state(screen.newest_entry), took)
    if as_json:
        print_json(watcher.state())


def _is_agent(what: str) -> bool:
    """Whether this is a path, and no environment."""
    if not is_env_id(what) or "://" in what:
        return False
    path = Path(what)
    return path.exists() or path.suffix == ".agent" or not ENV_ID_RE.fullmatch(what)


def _policy(name: str) -> Policy:
    """A user's policy; what it raises says that it was the policy."""
    policy = load_target(name)
    if not callable(policy):
        raise ValueError(f"{name} is no function from observations to actions, but {policy!r}")

    def act(observations: Any) -> Any:
        try:
            return policy(observations)
        except Exception as error:
            error.add_note("shoal: in the policy")
            raise

    return act


@contextmanager
def _named_if_refused(policy: str | None) -> Iterator[None]:
    """If a user's policy gives what are no actions, say that it was the policy."""
    try:
        yield
    except gymnasium.error.InvalidAction as error:
        if policy:
            error.add_note("shoal: in the policy's actions")
        raise


def _film(
    agent: Path,
    output: Path | None,
    opponent: str,
    episodes: int,
    env: str | None,
    seed: int,
    as_json: bool,
) -> None:
    require_path(agent, "agent")
    from shoal.train import film_agent

    with stdout_reserved_for_json(as_json):
        path = film_agent(agent, output, opponent, episodes, env=env, seed=seed)
    if as_json:
        print_json({"video": str(path)})
    else:
        print_line(str(path))
