"""Parsing of the command lines that texts show."""

import typer

from shoal._cli.app import app

__all__ = ["parse"]


def parse(words):
    """Parse a command line without running it."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        if name.startswith("-"):
            assert any(name in option.opts for option in command.params), f"no such option: {name}"
            return
        assert name in command.commands, f"no such command: {name}"
        command = command.commands[name]
    command.make_context(name, words)
