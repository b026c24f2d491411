"""The commands of ``shoal``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import shoal
from shoal.cli.bench import bench
from shoal.cli.new_kernel import write_kernel
from shoal.cli.play import play
from shoal.cli.serve import serve_command
from shoal.cli.telling import explained
from shoal.cli.training import add_training

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)
app.add_typer(play, name="play")
app.command("serve")(serve_command)
app.command()(bench)
add_training(app)


@app.callback()
def shoal_command() -> None:
    """Steps many reinforcement-learning environments as one."""


@app.command()
def version() -> None:
    """Say which version this is."""
    Console().print(shoal.__version__, highlight=False)


@app.command()
def new_kernel(
    name: Annotated[str, typer.Argument(help="What the environment is called, as in CatchBall.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it; by default a folder of its name.")
    ] = None,
) -> None:
    """Write a native environment to start from: source, build and test."""
    with explained():
        written = write_kernel(name, folder)
    console = Console()
    console.print(f"{written}/: {', '.join(path.name for path in sorted(written.iterdir()))}")
    console.print(f"Next: cd {written} && make test", highlight=False)
