"""The commands of ``shoal``."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import gymnasium
import numpy as np
import typer

import shoal
from shoal._cli.bench import bench
from shoal._cli.doctor import doctor
from shoal._cli.envs import envs
from shoal._cli.new_kernel import write_kernel
from shoal._cli.output import AsJson, print_json, print_line, report_user_errors
from shoal._cli.play import play
from shoal._cli.serve import serve_command
from shoal._cli.training import add_training
from shoal._cli.watch import watch

__all__ = ["app"]

TRY, SERVE, WRITE = "Try", "Serve", "Write"
"""Titles under which the help has commands, in this order; training has one of its own."""

app = typer.Typer(no_args_is_help=True)


def _say_version(wanted: bool) -> None:
    if wanted:
        print_line(shoal.__version__)
        raise typer.Exit


@app.callback()
def shoal_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """Steps many reinforcement-learning environments as one."""


app.command(rich_help_panel=TRY)(doctor)
app.command(rich_help_panel=TRY)(envs)
app.command(rich_help_panel=TRY)(bench)
app.command(rich_help_panel=TRY)(watch)
app.add_typer(play, name="play", rich_help_panel=TRY)
add_training(app)
app.command("serve", rich_help_panel=SERVE)(serve_command)


@app.command(rich_help_panel=WRITE)
def new_kernel(
    name: Annotated[str, typer.Argument(help="What the environment is called, as in CatchBall.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it; by default a folder of its name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a native environment to start from."""
    with report_user_errors():
        written = write_kernel(name, folder)
    files = sorted(path.name for path in written.iterdir())
    if as_json:
        print_json({"folder": str(written), "files": files})
        return
    print_line(f"{written}/: {', '.join(files)}")
    print_line(f"Next: cd {written} && make test")


@app.command(rich_help_panel=TRY)
def version(as_json: AsJson = False) -> None:
    """Say which version this is."""
    if not as_json:
        print_line(shoal.__version__)
        return
    print_json(
        {
            "shoal": shoal.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "gymnasium": gymnasium.__version__,
        }
    )
