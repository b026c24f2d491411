"""The command line: ``shoal``.

How it works: docs/internals/tools.md.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from shoal._cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'{error.name} is not installed: pip install "shoal[cli]"')
    app(prog_name="shoal")  # the same name for ``python -m shoal``
