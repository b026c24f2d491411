"""What users name on the command line, found."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from typing import Any

__all__ = ["is_env_id", "load_target", "parse_env_args", "require_path"]

_PYTHON = ".py"


def is_env_id(text: str) -> bool:
    """Whether this is an environment's id, and no name of something in a module or a file.

    >>> is_env_id("CartPole-v1"), is_env_id("ale_py:ALE/Pong-v5")
    (True, True)
    >>> is_env_id("my_envs:make_env"), is_env_id("envs/my_envs.py:MyEnv"), is_env_id("my_envs.py")
    (False, False, False)
    """
    _, colon, name = text.partition(":")
    if text.endswith(_PYTHON):
        return False
    return not colon or not all(part.isidentifier() for part in name.split("."))


def load_target(text: str) -> Any:
    """What ``module:name`` or ``folder/file.py:name`` names; an environment's id as it is.

    Modules are looked for in the current folder as well.

    >>> load_target("CartPole-v1")
    'CartPole-v1'
    >>> load_target("math:pi")
    3.141592653589793
    """
    if is_env_id(text):
        return text
    source, _, name = text.partition(":")
    folder = Path.cwd()
    if source.endswith(_PYTHON):
        file = Path(source).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {source}")
        if not name:
            choice = [f"{source}:{each}" for each in _environments_in(file)]
            raise ValueError(f"name the class too: {', '.join(choice) or f'{source}:NAME'}")
        folder, source = file.parent, file.stem
    if str(folder) not in sys.path:  # which workers are told of
        sys.path.insert(0, str(folder))
    module = importlib.import_module(source)
    try:
        return attrgetter(name)(module)
    except AttributeError as error:
        near = get_close_matches(error.name or "", dir(error.obj), n=1)
        meant = f", did you mean {near[0]}?" if near else ""
        raise AttributeError(f"{error}{meant}") from None


def _environments_in(file: Path) -> list[str]:
    """The classes in a file that look like environments, which is read but not run."""
    names: list[str] = []
    for found in ast.parse(file.read_bytes(), str(file)).body:
        if isinstance(found, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in found.bases]
            if any(base in names or base.endswith("Env") for base in bases):
                names.append(found.name)
    return names


def require_path(path: Path, what: str) -> None:
    """Say that there is no such file or folder, before anything is said that matters less."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {what} {path}")


def parse_env_args(given: Sequence[str]) -> dict[str, Any]:
    """The arguments of an environment: values as Python writes them; anything else is text.

    >>> parse_env_args(["g=1.62", "map_name=8x8", "is_slippery=False"])
    {'g': 1.62, 'map_name': '8x8', 'is_slippery': False}
    """
    arguments: dict[str, Any] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise ValueError(f"--env-arg must be name=value, got {text!r}")
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            arguments[name] = value
    return arguments
