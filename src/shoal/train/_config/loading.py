"""Load and validate configs; errors name the path of the invalid field."""

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
"""The environment with modes, opponents and shaped rewards."""

_VECTOR_OPTIONS = {"pin", "seeding", "thread_affinity_offset", "workers"}

SHIPPED = Path(__file__).parent.parent / "configs"
"""The folder of the bundled configs."""


def config_file(path: str | Path) -> Path:
    """Return the path of a config: the file itself, or a bundled config of this name.

    >>> config_file("configs/curriculum_simple.json").name
    'curriculum_simple.json'
    """
    requested = Path(path)
    if requested.is_file():
        return requested
    included = SHIPPED / f"{requested.stem}.json"
    is_name = requested.parent in (Path(), Path("configs")) and requested.suffix in ("", ".json")
    if is_name and included.is_file():
        return included
    names = sorted(file.stem for file in SHIPPED.glob("*.json"))
    raise FileNotFoundError(
        f"there is no config {requested}, neither a file nor a bundled config: the bundled ones "
        f"are {', '.join(names)}"
    )


def load_config(path: str | Path) -> Config:
    """Load and validate a config.

    Args:
        path: A JSON file, or the name of a bundled config.

    Raises:
        ConfigError: The config is invalid; the message names the path of the field.
        FileNotFoundError: There is neither such a file nor a bundled config of this name.

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
    """Return the config of decoded JSON.

    >>> parse_config({"agent": {"type": "DDDQN"}, "curriculum": {"phasse": []}})
    Traceback (most recent call last):
    ...
    shoal.errors.ConfigError: curriculum.phasse is unknown; did you mean curriculum.phases?
    """
    return checked(convert(raw, Config))


def checked(config: Config) -> Config:
    """Return the config if it is valid; configs created in Python may be invalid, too.

    Raises:
        ConfigError: The config is invalid.
    """
    config = convert(msgspec.to_builtins(config), Config)
    settings = AGENT_SETTINGS[config.agent.type]
    convert(config.hyperparameters, settings, "hyperparameters")
    convert(config.agent.hyperparameters, settings, "agent.hyperparameters")
    for problem in _task_problems(config):
        raise ConfigError(problem)
    for number, phase in enumerate(config.curriculum.phases):
        for problem in _phase_problems(phase, config):
            raise ConfigError(f"curriculum.phases[{number}]{problem}")
    names = [phase.name for phase in config.curriculum.phases]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigError(f"curriculum.phases[{number}].name {name!r} is a duplicate")
    return config


def convert(raw: Any, struct: type[T], prefix: str = "") -> T:
    """Convert decoded JSON to a struct.

    Args:
        raw: The decoded JSON.
        struct: A class of settings.
        prefix: The path of ``raw`` in the config.

    Raises:
        ConfigError: A field is invalid; the message names its path.
    """
    try:
        return msgspec.convert(raw, struct)
    except msgspec.ValidationError as error:
        raise ConfigError(_message(str(error), struct, prefix)) from error


_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.*)`$")


def _message(msgspec_message: str, struct: type, prefix: str) -> str:
    """Return our message for an error of msgspec, with the full path of the field."""
    problem, _, location = msgspec_message.partition(" - at `")
    relative_path = location.rstrip("`").removeprefix("$").removeprefix(".")
    path = ".".join(part for part in (prefix, relative_path) if part)
    parent = f"{path}." if path else ""
    if match := _UNKNOWN.match(problem):
        names = _field_names(struct, relative_path)
        lower = {name.lower(): name for name in names}
        close = get_close_matches(match[1].lower(), lower, n=1, cutoff=0.5)
        if close:
            return f"{parent}{match[1]} is unknown; did you mean {parent}{lower[close[0]]}?"
        return f"{parent}{match[1]} is unknown; expected one of {', '.join(names)}"
    if match := _MISSING.match(problem):
        return f"{parent}{match[1]} is missing"
    if problem.startswith("Invalid enum value"):
        value = problem.removeprefix("Invalid enum value ")
        allowed = ", ".join(map(repr, get_args(_unwrapped(_type_at(struct, relative_path)))))
        return f"{path}: must be one of {allowed}, got {value}"
    return f"{path or 'the config'}: {problem[:1].lower()}{problem[1:]}".replace("`", "")


def _field_names(struct: type, path: str) -> list[str]:
    """Return the field names of the struct at a path."""
    return list(_unwrapped(_type_at(struct, path)).__struct_fields__)


def _type_at(struct: type, path: str) -> Any:
    """Return the type at a path."""
    current: Any = struct
    for part in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        current = _unwrapped(current)
        if part.startswith("["):
            arguments = get_args(current)
            is_sequence = get_origin(current) in (list, tuple)
            current = arguments[0] if is_sequence else arguments[-1]
        else:
            current = get_type_hints(current, include_extras=True)[part]
    return current


def _unwrapped(hint: Any) -> Any:
    """Return a type without ``Annotated`` and without None."""
    while get_origin(hint) in (Annotated, Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    return hint


def _task_problems(config: Config) -> Iterator[str]:
    """Yield errors about settings that do not apply to the environment."""
    if config.task.id == HOCKEY:
        for name in sorted(config.task.arguments.keys() - _VECTOR_OPTIONS):
            yield (
                f"task.arguments.{name} is not supported for hockey: expected one of "
                f"{', '.join(sorted(_VECTOR_OPTIONS))}; modes, keep_mode and opponents belong to "
                "curriculum.phases"
            )
        league = config.league
        if league and not (league.exploiter_share or "league" in _opponent_types(config)):
            yield "league: no phase has an opponent of type league, so the league is unused"
        return
    if config.league is not None:
        yield f"league: only {HOCKEY} has a league, not {config.task.id}"
    if config.training.eval_opponents is not None:
        yield f"training.eval_opponents: only {HOCKEY} has opponents, not {config.task.id}"


def _opponent_types(config: Config) -> set[str]:
    opponents = [phase.opponent for phase in config.curriculum.phases]
    return {part.type for opponent in opponents for part in [opponent, *(opponent.opponents or [])]}


def _phase_problems(phase: Phase, config: Config) -> Iterator[str]:
    """Yield errors about combinations of the fields of a phase."""
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
        yield ".environment.mixture: at least one weight must be above 0"
    yield from (f".opponent{problem}" for problem in _opponent_problems(phase.opponent, config))


def _opponent_problems(opponent: OpponentConfig, config: Config) -> Iterator[str]:
    """Yield errors about an opponent, as they follow its path."""
    is_mixture, opponents = opponent.type == "weighted_mixture", opponent.opponents
    if is_mixture != (opponents is not None) or opponents == []:
        yield ".opponents must be a non-empty list for type weighted_mixture, and absent otherwise"
    if opponent.checkpoint is not None and opponent.type != "self_play":
        yield f".checkpoint requires type self_play, got {opponent.type}"
    if opponent.type == "league" and config.league is None:
        yield ".type is league, but the config has no league"
    mixed = opponent.opponents or []
    if mixed and not any(part.weight for part in mixed):
        yield ".opponents: at least one weight must be above 0"
    for number, part in enumerate(mixed):
        if part.type == "weighted_mixture":
            yield f".opponents[{number}].type: a mixture cannot contain a mixture"
        problems = _opponent_problems(part, config)
        yield from (f".opponents[{number}]{problem}" for problem in problems)


def merged_hyperparameters(config: Config) -> Mapping[str, Any]:
    """Return the agent's settings; ``agent.hyperparameters`` override ``hyperparameters``."""
    return {**config.hyperparameters, **config.agent.hyperparameters}


def settings_of(config: Config) -> AgentSettings:
    """Return the agent's settings, defaults included."""
    return convert(merged_hyperparameters(config), AGENT_SETTINGS[config.agent.type])


def unused_settings(config: Config) -> list[str]:
    """Return the names of training settings that an on-policy agent ignores."""
    if issubclass(AGENT_SETTINGS[config.agent.type], OffPolicySettings):
        return []
    names = ("warmup_steps", "updates_per_step", "train_freq")
    defaults = Training()
    return [name for name in names if getattr(config.training, name) != getattr(defaults, name)]
