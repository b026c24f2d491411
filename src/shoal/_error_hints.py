"""Notes with suggestions, added to the errors that ``shoal.make`` raises."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import PurePath
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

__all__ = ["short_name", "with_hints"]

_UNEXPECTED = re.compile(r"(?:unexpected keyword argument|no setting) '(\w+)'")
_MISSING = re.compile(r"missing \d+ required [\w-]+ arguments?: ('\w+'(?:(?:,| and|, and) '\w+')*)")
_FILE = ".py"
_NO_DEFAULT = inspect.Parameter.empty


@contextmanager
def with_hints(source: Any, env_kwargs: dict[str, Any], options: Collection[str]) -> Iterator[None]:
    """Add a note with a suggestion to an exception that is raised in the block.

    Args:
        source: The first argument of ``shoal.make``, which environments are created from.
        env_kwargs: The arguments passed to the environment's constructor.
        options: The names of the options of ``shoal.make``.
    """
    try:
        yield
    except (TypeError, ImportError, gymnasium.error.Error) as error:
        for hint in _hints(error, source, env_kwargs, options):
            error.add_note(f"shoal: {hint}")
        raise


def short_name(source: Any) -> str:
    """Return a short name of the object that environments are created from.

    >>> short_name("CartPole-v1"), short_name(gymnasium.Env), short_name([gymnasium.Env] * 2)
    ("'CartPole-v1'", 'Env', 'these functions')
    """
    if isinstance(source, str | EnvSpec):
        return repr(getattr(source, "id", source))
    if isinstance(source, Sequence):
        return "these functions"
    if isinstance(source, partial):
        return short_name(source.func)  # without the arguments, which may be large
    return getattr(source, "__name__", type(source).__name__)


def _hints(
    error: BaseException, source: Any, env_kwargs: dict[str, Any], options: Collection[str]
) -> Iterator[str]:
    text = str(error)
    if isinstance(error, TypeError):
        unexpected = _UNEXPECTED.search(text)
        if unexpected and unexpected[1] in env_kwargs:
            yield _about_option(unexpected[1], source, options)
        missing = _MISSING.search(text)
        names = re.findall(r"\w+", missing[1].replace(" and ", " ")) if missing else []
        if names and set(names) <= _required(source, env_kwargs):
            pronoun = "it" if len(names) == 1 else "them"
            arguments = ", ".join(f"{name}=..." for name in names)
            yield f"pass {pronoun} on: shoal.make({short_name(source)}, {arguments})"
    elif isinstance(source, str) and ":" in source:
        module, _, name = source.rpartition(":")
        # A registered id ends with a version, and so contains a hyphen.
        if name.isidentifier() and _is_module(module):
            yield _about_class(module, name)


def _about_option(name: str, source: Any, options: Collection[str]) -> str:
    close = get_close_matches(name, options, 1)
    question = f"; did you mean {close[0]}?" if close else ""
    return (
        f"{name} is not an option of shoal.make, so it was passed to {short_name(source)}{question}"
    )


def _is_module(name: str) -> bool:
    return name.endswith(_FILE) or all(part.isidentifier() for part in name.split("."))


def _about_class(module: str, name: str) -> str:
    is_file = module.endswith(_FILE)
    origin = PurePath(module).stem if is_file else module
    note = "; only the command line accepts file.py:Class" if is_file else ""
    return f"pass the class itself: from {origin} import {name}; shoal.make({name}){note}"


def _required(source: Any, env_kwargs: dict[str, Any]) -> set[str]:
    """Return the names of a function's required parameters that are not in ``env_kwargs``."""
    try:
        parameters = inspect.signature(source).parameters.values()
    except (TypeError, ValueError):  # not callable, or without a signature
        return set()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        parameter.name
        for parameter in parameters
        if parameter.kind not in kinds
        and parameter.default is _NO_DEFAULT
        and parameter.name not in env_kwargs
    }
