"""``shoal watch``: show environments while they are stepped, or record an agent on video."""

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

_AGENT_PANEL = "Options for an agent"
_PACED_SHARE, _PACED_REFRESH = 0.5, 0.25
"""With ``--speed``: the share of time for rendering frames, and seconds between updates."""


def watch(
    target: Annotated[
        str,
        typer.Argument(
            help="An environment: id, module:factory or file.py:Class. Or an agent to record on "
            "video: a training run or an agent file.",
            autocompletion=completion.watchable,
        ),
    ],
    num_envs: Annotated[int, typer.Option(min=1, help="Number of environments.")] = 16,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    speed: Annotated[
        float | None,
        typer.Option(min=0.01, help="Speed relative to real time. Default: as fast as possible."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many seconds.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="module:function that maps observations of all slots to actions. Default: random."
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="Backend; see shoal.make.", autocompletion=completion.backends)
    ] = "auto",
    workers: Annotated[int | None, typer.Option(min=0, help="Number of workers.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Restart crashed workers instead of stopping.")
    ] = False,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Argument of the environment's constructor. Can be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Video file. Default: in the folder of the run.", rich_help_panel=_AGENT_PANEL
        ),
    ] = None,
    opponent: Annotated[
        str,
        typer.Option(
            help="Hockey opponent: weak, strong or an agent.",
            rich_help_panel=_AGENT_PANEL,
            autocompletion=completion.players,
        ),
    ] = "strong",
    episodes: Annotated[
        int, typer.Option(min=1, help="Number of episodes.", rich_help_panel=_AGENT_PANEL)
    ] = 3,
    env: Annotated[
        str | None,
        typer.Option(
            help="Environment. Default: that of the run, or hockey.",
            rich_help_panel=_AGENT_PANEL,
            autocompletion=completion.environments,
        ),
    ] = None,
) -> None:
    """Watch environments live, or record an agent on video."""
    if _is_agent(target):
        with report_user_errors():
            _record(Path(target), output, opponent, episodes, env, seed, as_json)
        return
    options: dict[str, Any] = {"backend": backend, "workers": workers}
    if restart:
        options["on_crash"] = "restart"
    watcher = Watcher(target, refresh=DEFAULT_REFRESH if speed is None else _PACED_REFRESH)
    with report_user_errors(), ExitStack() as opened:
        arguments = parse_env_args(env_arg or [])
        page = opened.enter_context(LivePage(watcher, host, port)) if web else None
        envs = opened.enter_context(
            make_vector(load_target(target), num_envs, options, arguments, with_pictures=web)
        )
        act = _policy(policy) if policy else random_policy(envs, seed)
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

        def update_screen() -> None:
            if screen.is_due:
                screen.show(watcher.state(screen.newest_entry))

        start = time.perf_counter()
        with suppress(KeyboardInterrupt), _policy_named_on_invalid_actions(policy):
            run_loop(envs, act, seed=seed, seconds=seconds, rate=rate, on_step=update_screen)
        elapsed = time.perf_counter() - start
    screen.show_summary(watcher.state(screen.newest_entry), elapsed)
    if as_json:
        print_json(watcher.state())


def _is_agent(target: str) -> bool:
    """Whether this is a path, rather than an environment."""
    if not is_env_id(target) or "://" in target:
        return False
    path = Path(target)
    return path.exists() or path.suffix == ".agent" or not ENV_ID_RE.fullmatch(target)


def _policy(name: str) -> Policy:
    """Load a user's policy. A note names the policy in the exceptions that it raises."""
    policy = load_target(name)
    if not callable(policy):
        raise ValueError(f"{name} must be a function from observations to actions, got {policy!r}")

    def act(observations: Any) -> Any:
        try:
            return policy(observations)
        except Exception as error:
            error.add_note("shoal: in the policy")
            raise

    return act


@contextmanager
def _policy_named_on_invalid_actions(policy: str | None) -> Iterator[None]:
    """Add a note to an error about invalid actions if they come from a user's policy."""
    try:
        yield
    except gymnasium.error.InvalidAction as error:
        if policy:
            error.add_note("shoal: in the policy's actions")
        raise


def _record(
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
