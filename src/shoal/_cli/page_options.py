"""Options of the commands that can show a web page."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Host", "Port", "Web"]

Web = Annotated[bool, typer.Option("--web", help="Also show a live page for the browser.")]

Host = Annotated[
    str, typer.Option(help="Address of the page. The default is reachable only from this machine.")
]

Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port of the page. Default: 7788 if free.")
]
