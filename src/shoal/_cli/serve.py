"""``shoal serve``: vectors for clients on other machines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import shoal
from shoal._cli import completion
from shoal._cli.env_lookup import is_env_id, load_target
from shoal._cli.output import report_user_errors

__all__ = ["serve_command"]


def serve_command(
    hosted: Annotated[
        list[str],
        typer.Argument(
            help="What to host: module:factory, or an environment's id; NAME=... gives it another "
            "name than its own.",
            autocompletion=completion.environments,
        ),
    ],
    bind: Annotated[
        list[str] | None,
        typer.Option(help="Where to listen, tcp://host:port and the like; may be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="The file with what clients must know; else SHOAL_TOKEN is looked at."),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="For tls:// and wss://.")] = None,
    key: Annotated[Path | None, typer.Option(help="Of the certificate.")] = None,
    authority: Annotated[
        Path | None, typer.Option(help="Clients must show a certificate of this one.")
    ] = None,
    max_sessions: Annotated[int, typer.Option(min=1, help="How many clients at once.")] = 64,
    session_ttl: Annotated[
        float, typer.Option(min=0, help="Seconds that a session outlives its connection.")
    ] = 60.0,
    max_inflight: Annotated[
        int, typer.Option(min=1, help="Requests that a client may have in flight.")
    ] = 1024,
    max_envs: Annotated[int, typer.Option(min=1, help="Slots that a client may ask for.")] = 65_536,
    max_meta: Annotated[
        int, typer.Option(min=1, help="Bytes of infos, options and arguments of one message.")
    ] = 1 << 26,
    tracebacks: Annotated[
        bool, typer.Option(help="Tell clients where in the server's code an error was raised.")
    ] = False,
) -> None:
    """Host vectors of environments until Ctrl-C."""
    with report_user_errors():
        tls = _tls(certificate, key, authority)
        server = shoal.serve(
            _by_name(hosted),
            bind or ["tcp://127.0.0.1:7711"],
            token=_token(token_file),
            tls=tls,
            max_sessions=max_sessions,
            session_ttl=session_ttl,
            max_inflight=max_inflight,
            max_envs=max_envs,
            max_meta=max_meta,
            tracebacks=tracebacks,
        )
    console = Console(stderr=True)
    with server:
        for url in server.urls:
            names = ", ".join(server.names)
            console.print(f"Listening at {url} with {names}", highlight=False)
        server.wait()


def _by_name(hosted: list[str]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for text in hosted:
        name, what = _named(text)
        if not name or name in named:
            problem = "is given twice" if name else "is empty"
            raise ValueError(f"{text}: the name {name!r} {problem}")
        named[name] = what
    return named


def _named(text: str) -> tuple[str, Any]:
    name, separator, what = text.partition("=")
    if not separator:
        name, what = (text if is_env_id(text) else text.partition(":")[2]), text
    return name, load_target(what)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("SHOAL_TOKEN")
    token = file.read_text().strip()
    if not token:
        raise ValueError(f"{file} is empty, and would let everybody in")
    return token


def _tls(certificate: Path | None, key: Path | None, authority: Path | None) -> Any:
    if certificate is None or key is None:
        if certificate or key or authority:
            raise ValueError("--certificate and --key go together")
        return None
    return (certificate, key) if authority is None else (certificate, key, authority)
