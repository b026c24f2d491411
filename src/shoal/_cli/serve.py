"""``shoal serve``: host vectors for clients on other machines."""

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
            help="What to host: an environment id or module:factory. NAME=... sets the name under "
            "which clients find it.",
            autocompletion=completion.environments,
        ),
    ],
    bind: Annotated[
        list[str] | None,
        typer.Option(help="Address to listen on, such as tcp://HOST:PORT. Can be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token for clients. Default: the variable SHOAL_TOKEN."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Certificate for tls:// and wss:// addresses.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Private key of the certificate.")] = None,
    authority: Annotated[
        Path | None, typer.Option(help="Require client certificates signed by this authority.")
    ] = None,
    max_sessions: Annotated[int, typer.Option(min=1, help="Maximum number of sessions.")] = 64,
    session_ttl: Annotated[
        float, typer.Option(min=0, help="Seconds to keep a session after its connection is lost.")
    ] = 60.0,
    max_inflight: Annotated[
        int, typer.Option(min=1, help="Maximum number of requests in flight per client.")
    ] = 1024,
    max_envs: Annotated[
        int, typer.Option(min=1, help="Maximum number of slots per client.")
    ] = 65_536,
    max_meta: Annotated[
        int, typer.Option(min=1, help="Maximum bytes of infos, options and arguments per message.")
    ] = 1 << 26,
    tracebacks: Annotated[
        bool, typer.Option(help="Send clients the tracebacks of errors.")
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
            console.print(f"Listening on {url} for {names}", highlight=False)
        server.wait()


def _by_name(hosted: list[str]) -> dict[str, Any]:
    sources: dict[str, Any] = {}
    for text in hosted:
        name, source = _parse_hosted(text)
        if not name or name in sources:
            problem = "is used twice" if name else "is empty"
            raise ValueError(f"{text}: the name {name!r} {problem}")
        sources[name] = source
    return sources


def _parse_hosted(text: str) -> tuple[str, Any]:
    name, separator, target = text.partition("=")
    if not separator:
        name, target = (text if is_env_id(text) else text.partition(":")[2]), text
    return name, load_target(target)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("SHOAL_TOKEN")
    token = file.read_text().strip()
    if not token:
        raise ValueError(f"the token file {file} is empty")
    return token


def _tls(certificate: Path | None, key: Path | None, authority: Path | None) -> Any:
    if certificate is None or key is None:
        if certificate or key or authority:
            raise ValueError("--certificate and --key must be given together")
        return None
    return (certificate, key) if authority is None else (certificate, key, authority)
