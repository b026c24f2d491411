"""Load environments, functions and arguments that are given on the command line."""

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
    """Whether this is an environment's id, rather than the name of an object in a module or file.

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
    """Return the object that ``module:name`` or ``folder/file.py:name`` names, or an id unchanged.

    Modules are also searched for in the current folder.

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
            candidates = [f"{source}:{each}" for each in _environment_classes(file)]
            expected = " or ".join(candidates) or f"{source}:NAME"
            raise ValueError(f"the name of the class is missing; expected {expected}")
        folder, source = file.parent, file.stem
    if str(folder) not in sys.path:  # workers inherit sys.path
        sys.path.insert(0, str(folder))
    module = importlib.import_module(source)
    try:
        return attrgetter(name)(module)
    except AttributeError as error:
        matches = get_close_matches(error.name or "", dir(error.obj), n=1)
        hint = f"; did you mean {matches[0]}?" if matches else ""
        raise AttributeError(f"{error}{hint}") from None


def _environment_classes(file: Path) -> list[str]:
    """Return the classes in a file that look like environments, without executing the file."""
    names: list[str] = []
    for statement in ast.parse(file.read_bytes(), str(file)).body:
        if isinstance(statement, ast.ClassDef):
            bases = [ast.unparse(base).partition("[")[0] for base in statement.bases]
            if any(base in names or base.endswith("Env") for base in bases):
                names.append(statement.name)
    return names


def require_path(path: Path, kind: str) -> None:
    """Raise an error if the path does not exist, before slow imports and other checks."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {kind} {path}")


def parse_env_args(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUE`` arguments. Values are Python literals; any other value is a string.

    >>> parse_env_args(["g=1.62", "map_name=8x8", "is_slippery=False"])
    {'g': 1.62, 'map_name': '8x8', 'is_slippery': False}
    """
    arguments: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise ValueError(f"--env-arg must be NAME=VALUE, got {text!r}")
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            arguments[name] = value
    return arguments
