"""Reads configs, and says precisely what is wrong with one that cannot be."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from shoal.errors import ConfigError
from shoal.train._config.agent_settings import AGENT_SETTINGS, AgentSettings, OffPolicySettings
from shoal.train._config.schema import (
    Config,
    EnvironmentConfig,
    OpponentConfig,
    Phase,
    Training,
)

__all__ = [
    "HOCKEY",
    "checked",
    "config_file",
    "convert",
    "load_config",
    "merged_hyperparameters",
    "parse_config",
    "settings_of",
    "unused_settings",
]

T = TypeVar("T")

HOCKEY = "shoal/Hockey-v0"
"""The environment that has modes, opponents and shaped rewards."""

_VECTOR_OPTIONS = {"pin", "seeding", "thread_affinity_offset", "workers"}

SHIPPED = Path(__file__).parent.parent / "configs"
"""The configs that come along."""


def config_file(path: str | Path) -> Path:
    """The file that is meant: this one, or where there is none, a config that comes along.

    >>> config_file("configs/curriculum_simple.json").name
    'curriculum_simple.json'
    """
    wanted = Path(path)
    if wanted.is_file():
        return wanted
    shipped = SHIPPED / f"{wanted.stem}.json"
    is_name = wanted.parent in (Path(), Path("configs")) and wanted.suffix in ("", ".json")
    if is_name and shipped.is_file():
        return shipped
    names = sorted(file.stem for file in SHIPPED.glob("*.json"))
    raise FileNotFoundError(
        f"there is no config {wanted}, and none of this name comes along: those that do are "
        f"{', '.join(names)}"
    )


def load_config(path: str | Path) -> Config:
    """Read a config.

    Args:
        path: A JSON file, or the name of a config that comes along.

    Raises:
        ConfigError: Something in it is wrong; the message names where.
        FileNotFoundError: There is no such file.

    Example:
        >>> load_config("cartpole_dddqn").agent.type
        'DDDQN'
    """
    file = config_file(path)
    try:
        raw = msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise ConfigError(f"{file} is not JSON: {error}") from error
    try:
        return parse_config(raw)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def parse_config(raw: Any) -> Config:
    """A config from what JSON gives.

    >>> parse_config({"agent": {"type": "DDDQN"}, "curriculum": {"phasse": []}})
    Traceback (most recent call last):
    ...
    shoal.errors.ConfigError: curriculum.phasse is unknown; did you mean curriculum.phases?
    """
    return checked(convert(raw, Config))


def checked(config: Config) -> Config:
    """The same config, if it can be: one that was made in Python may be wrong, too."""
    config = convert(msgspec.to_builtins(config), Config)
    settings = AGENT_SETTINGS[config.agent.type]
    convert(config.hyperparameters, settings, "hyperparameters")
    convert(config.agent.hyperparameters, settings, "agent.hyperparameters")
    for problem in _misplaced(config):
        raise ConfigError(problem)
    for number, phase in enumerate(config.curriculum.phases):
        for problem in _problems(phase, config):
            raise ConfigError(f"curriculum.phases[{number}]{problem}")
    names = [phase.name for phase in config.curriculum.phases]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigError(f"curriculum.phases[{number}].name {name!r} is given twice")
    return config


def convert(raw: Any, wanted: type[T], prefix: str = "") -> T:
    """Raw data as this class of settings, or an error that names the path of what is wrong.

    Args:
        raw: What JSON gives.
        wanted: A class of settings.
        prefix: Where in the config it stands.
    """
    try:
        return msgspec.convert(raw, wanted)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(str(error), wanted, prefix)) from error


_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.*)`$")


def _explained(message: str, wanted: type, prefix: str) -> str:
    what, _, where = message.partition(" - at `")
    path = where.rstrip("`").removeprefix("$").removeprefix(".")
    place = ".".join(part for part in (prefix, path) if part)
    dot = f"{place}." if place else ""
    if found := _UNKNOWN.match(what):
        names = _field_names(wanted, path)
        alike = {name.lower(): name for name in names}
        close = get_close_matches(found[1].lower(), alike, n=1, cutoff=0.5)
        hint = f"did you mean {dot}{alike[close[0]]}?" if close else f"there are {', '.join(names)}"
        return f"{dot}{found[1]} is unknown; {hint}"
    if found := _MISSING.match(what):
        return f"{dot}{found[1]} is missing"
    if what.startswith("Invalid enum value"):
        given = what.removeprefix("Invalid enum value ")
        possible = ", ".join(map(repr, get_args(_inner(_type_at(wanted, path)))))
        return f"{place}: must be one of {possible}, got {given}"
    return f"{place or 'the config'}: {what[:1].lower()}{what[1:]}".replace("`", "")


def _field_names(wanted: type, path: str) -> list[str]:
    """The names that the settings have to which a path leads."""
    return list(_inner(_type_at(wanted, path)).__struct_fields__)


def _type_at(wanted: type, path: str) -> Any:
    """The type of what a path leads to."""
    here: Any = wanted
    for part in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        here = _inner(here)
        if part.startswith("["):
            inner = get_args(here)
            here = inner[0] if get_origin(here) in (list, tuple) else inner[-1]
        else:
            here = get_type_hints(here, include_extras=True)[part]
    return here


def _inner(kind: Any) -> Any:
    """A type without annotation, and without None."""
    while get_origin(kind) in (Annotated, Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind


def _misplaced(config: Config) -> Iterator[str]:
    """What cannot be said of the environment that is trained on."""
    if config.task.id == HOCKEY:
        for name in sorted(config.task.arguments.keys() - _VECTOR_OPTIONS):
            yield (
                f"task.arguments.{name}: hockey takes {', '.join(sorted(_VECTOR_OPTIONS))} here; "
                "modes, keep_mode and opponents belong to curriculum.phases"
            )
        league = config.league
        if league and not (league.exploiter_share or "league" in _opponent_types(config)):
            yield "league: no phase has an opponent of type league, so nobody would play in it"
        return
    if config.league is not None:
        yield f"league: only {HOCKEY} has a league, not {config.task.id}"
    if config.training.eval_opponents is not None:
        yield f"training.eval_opponents: only {HOCKEY} has opponents, not {config.task.id}"


def _opponent_types(config: Config) -> set[str]:
    opponents = [phase.opponent for phase in config.curriculum.phases]
    return {part.type for opponent in opponents for part in [opponent, *(opponent.opponents or [])]}


def _problems(phase: Phase, config: Config) -> Iterator[str]:
    """What is wrong with a phase that each of its fields by itself does not show."""
    if (phase.episodes is None) == (phase.steps is None):
        yield " must have either episodes or steps"
    environment = phase.environment
    if config.task.id != HOCKEY:
        if (
            environment != EnvironmentConfig()
            or phase.reward_shaping
            or (phase.opponent != OpponentConfig())
        ):
            yield f": only {HOCKEY} has modes, opponents and shaped rewards, not {config.task.id}"
        return
    if environment.mode is not None and environment.mixture is not None:
        yield ".environment must have either mode or mixture, not both"
    if environment.mixture is not None and not any(part.weight for part in environment.mixture):
        yield ".environment.mixture: a weight must be above 0"
    yield from (f".opponent{problem}" for problem in _problems_of(phase.opponent, config))


def _problems_of(opponent: OpponentConfig, config: Config) -> Iterator[str]:
    is_mixture, opponents = opponent.type == "weighted_mixture", opponent.opponents
    if is_mixture != (opponents is not None) or opponents == []:
        yield ".opponents goes with type weighted_mixture, and must not be empty there"
    if opponent.checkpoint is not None and opponent.type != "self_play":
        yield f".checkpoint goes with type self_play, not with {opponent.type}"
    if opponent.type == "league" and config.league is None:
        yield ".type is league, but the config has no league"
    mixed = opponent.opponents or []
    if mixed and not any(part.weight for part in mixed):
        yield ".opponents: a weight must be above 0"
    for number, part in enumerate(mixed):
        if part.type == "weighted_mixture":
            yield f".opponents[{number}].type: a mixture cannot hold a mixture"
        yield from (f".opponents[{number}]{problem}" for problem in _problems_of(part, config))


def merged_hyperparameters(config: Config) -> Mapping[str, Any]:
    """The settings of the agent, from both places where they may stand."""
    return {**config.hyperparameters, **config.agent.hyperparameters}


def settings_of(config: Config) -> AgentSettings:
    """The same, with all that are not given."""
    return convert(merged_hyperparameters(config), AGENT_SETTINGS[config.agent.type])


def unused_settings(config: Config) -> list[str]:
    """What is said of training that an agent does not heed which has a pace of its own."""
    if issubclass(AGENT_SETTINGS[config.agent.type], OffPolicySettings):
        return []
    names = ("warmup_steps", "updates_per_step", "train_freq")
    usual = Training()
    return [name for name in names if getattr(config.training, name) != getattr(usual, name)]
