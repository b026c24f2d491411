"""The options of commands that show a page."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Host", "Port", "Web"]

Web = Annotated[bool, typer.Option("--web", help="Show a page in the browser, too.")]

Host = Annotated[
    str, typer.Option(help="Where the page is; by default only this machine can look.")
]

Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Of the page; 7788 if it is free.")
]
