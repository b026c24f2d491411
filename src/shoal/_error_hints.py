"""What users may have meant: notes on the errors that ``shoal.make`` ends with."""

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

__all__ = ["hinting", "named"]

_UNEXPECTED = re.compile(r"(?:unexpected keyword argument|no setting) '(\w+)'")
_MISSING = re.compile(r"missing \d+ required [\w-]+ arguments?: ('\w+'(?:(?:,| and|, and) '\w+')*)")
_FILE = ".py"
_NO_DEFAULT = inspect.Parameter.empty


@contextmanager
def hinting(what: Any, env_kwargs: dict[str, Any], options: Collection[str]) -> Iterator[None]:
    """Add to an exception what the user may have meant.

    ``what`` is what environments are made of, ``env_kwargs`` the arguments that they are given,
    and ``options`` the names of those that they are not given.
    """
    try:
        yield
    except (TypeError, ImportError, gymnasium.error.Error) as error:
        for hint in _hints(error, what, env_kwargs, options):
            error.add_note(f"shoal: {hint}")
        raise


def named(what: Any) -> str:
    """What environments are made of, in a word or a few.

    >>> named("CartPole-v1"), named(gymnasium.Env), named([gymnasium.Env] * 2)
    ("'CartPole-v1'", 'Env', 'these functions')
    """
    if isinstance(what, str | EnvSpec):
        return repr(getattr(what, "id", what))
    if isinstance(what, Sequence):
        return "these functions"
    if isinstance(what, partial):
        return named(what.func)  # and not the arguments, which may be large
    return getattr(what, "__name__", type(what).__name__)


def _hints(
    error: BaseException, what: Any, env_kwargs: dict[str, Any], options: Collection[str]
) -> Iterator[str]:
    text = str(error)
    if isinstance(error, TypeError):
        unexpected = _UNEXPECTED.search(text)
        if unexpected and unexpected[1] in env_kwargs:
            yield _about_option(unexpected[1], what, options)
        missing = _MISSING.search(text)
        names = re.findall(r"\w+", missing[1].replace(" and ", " ")) if missing else []
        if names and set(names) <= _required(what, env_kwargs):
            it = "it" if len(names) == 1 else "them"
            given = ", ".join(f"{name}=..." for name in names)
            yield f"pass {it} on: shoal.make({named(what)}, {given})"
    elif isinstance(what, str) and ":" in what:
        module, _, name = what.rpartition(":")
        # What is registered has a version, and so a hyphen.
        if name.isidentifier() and _is_module(module):
            yield _about_class(module, name)


def _about_option(name: str, what: Any, options: Collection[str]) -> str:
    close = get_close_matches(name, options, 1)
    question = f"; did you mean {close[0]}?" if close else ""
    return f"{name} is no option of shoal.make, so it was given to {named(what)}{question}"


def _is_module(name: str) -> bool:
    return name.endswith(_FILE) or all(part.isidentifier() for part in name.split("."))


def _about_class(module: str, name: str) -> str:
    is_file = module.endswith(_FILE)
    origin = PurePath(module).stem if is_file else module
    known = "; file.py:Class is for the command line" if is_file else ""
    return f"pass the class itself: from {origin} import {name}; shoal.make({name}){known}"


def _required(what: Any, env_kwargs: dict[str, Any]) -> set[str]:
    """The arguments that a function cannot do without, and has not been given."""
    try:
        parameters = inspect.signature(what).parameters.values()
    except (TypeError, ValueError):  # no function, or one that does not tell
        return set()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        it.name
        for it in parameters
        if it.kind not in kinds and it.default is _NO_DEFAULT and it.name not in env_kwargs
    }
