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

EXPLORE, SERVE, DEVELOP = "Explore", "Serve", "Develop"
"""Panels of commands in the help text; ``shoal._cli.training`` has another one."""

app = typer.Typer(no_args_is_help=True)


def _print_version(requested: bool) -> None:
    if requested:
        print_line(shoal.__version__)
        raise typer.Exit


@app.callback()
def shoal_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Step many reinforcement-learning environments as one."""


app.command(rich_help_panel=EXPLORE)(doctor)
app.command(rich_help_panel=EXPLORE)(envs)
app.command(rich_help_panel=EXPLORE)(bench)
app.command(rich_help_panel=EXPLORE)(watch)
app.add_typer(play, name="play", rich_help_panel=EXPLORE)
add_training(app)
app.command("serve", rich_help_panel=SERVE)(serve_command)


@app.command(rich_help_panel=DEVELOP)
def new_kernel(
    name: Annotated[str, typer.Argument(help="Name of the environment, such as CatchBall.")],
    folder: Annotated[
        Path | None, typer.Option(help="Output folder. Default: the name in snake case.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a native environment to start from."""
    with report_user_errors():
        path = write_kernel(name, folder)
    files = sorted(file.name for file in path.iterdir())
    if as_json:
        print_json({"folder": str(path), "files": files})
        return
    print_line(f"Created {path}/: {', '.join(files)}")
    print_line(f"Next: cd {path} && make test")


@app.command(rich_help_panel=EXPLORE)
def version(as_json: AsJson = False) -> None:
    """Show the version."""
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
