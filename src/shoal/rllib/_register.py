"""Vectors under a name that RLlib knows, in whichever process its env runners are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from ray import cloudpickle
from ray.tune import register_env

import shoal
from shoal._envs.atari.registered_ids import is_atari
from shoal.errors import FactoryPicklingError
from shoal.kernels import Kernel
from shoal.pools._environments import EnvFactory
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.wrappers._base import autoreset_mode_of

__all__ = ["VectorSource", "register"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]

VectorSource = str | EnvSpec | Kernel | EnvFactory | Sequence[EnvFactory] | Callable[..., Vector]
"""What :func:`shoal.make` takes, where a server is, or a function that makes a vector."""

_NOT_KEPT = "RLlib keeps the arrays that it gets, so they must be copies: leave out copy=False"


def register(what: VectorSource, *, name: str | None = None, **options: Any) -> str:
    """Register a vector with RLlib; returns the name that ``AlgorithmConfig.environment`` takes.

    How many slots it has is the config's ``num_envs_per_env_runner``, and
    ``gym_env_vectorize_mode="vector_entry_point"`` must be set there. Entries of ``env_config`` are
    further options, which count more than those given here.

    An env runner resets its vector with the config's seed plus its own number, from which the slots
    count up, as they do in RLlib's own vectors. So neighbouring env runners share most of their
    seeds; with ``seeding="independent"`` they share none.

    Args:
        what: An id, a spec, a kernel, a function that makes one environment, or a list of such
            functions, for :func:`shoal.make`. A URL, for :func:`shoal.connect`. Or a function that
            makes a vector: it is called with ``num_envs`` and the options, as keyword arguments,
            if it has a parameter ``num_envs``; else, if it must be given one argument, with
            ``env_config``, as RLlib's own creators are.
        name: What to register it as; made of ``what`` where it is not said. With the same name the
            newest registration counts.
        options: For what makes the vector.

    Raises:
        ValueError: The vector would reset slots at another time than RLlib expects, or use arrays
            again that RLlib keeps. What only shows in a vector that was made is raised where it is
            made: in the env runner.
        FactoryPicklingError: It cannot be sent to env runners in other processes.

    Example:
        .. code-block:: python

            register("CartPole-v1", seeding="independent")
            register("tcp://rack-7:7711/Pick-v1", token="...")
            register(lambda num_envs: NormalizeReward(shoal.make("Pendulum-v1", num_envs)))
    """
    _check_options(options)
    creator = VectorCreator(_known_elsewhere(what), options)
    try:
        pickled: bytes = cloudpickle.dumps(creator)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FactoryPicklingError(
            f"{what!r} cannot be sent to env runners, which may be other processes: {error}"
        ) from error
    if name is None:
        # Slashes and colons have a meaning for RLlib, and it makes folders of this name.
        name = "-".join(["shoal", *re.findall(r"[\w.]+", _name_of(what))])
        if options or not isinstance(what, str):
            name = f"{name}-{crc32(pickled):08x}"
    register_env(name, creator)
    return name


class VectorCreator:
    """Makes a vector where RLlib asks for one; this is what is registered.

    Args:
        what: What a vector is made of.
        options: For what makes it.
    """

    def __init__(self, what: VectorSource, options: dict[str, Any]) -> None:
        self._what = what
        self._options = options

    def __call__(self, env_config: dict[str, Any]) -> Vector:
        """Make the vector; RLlib tells the number of slots by the entry ``num_envs``."""
        config = dict(env_config)
        if "num_envs" not in config:
            raise ValueError(
                "a vector was registered, but RLlib asks for a single environment: set "
                "config.env_runners(gym_env_vectorize_mode='vector_entry_point')"
            )
        num_envs = config.pop("num_envs")
        vector: Vector = _made(self._what, num_envs, {**self._options, **config})
        try:
            _check_vector(vector, num_envs)
        except (TypeError, ValueError):
            if hasattr(vector, "close"):
                vector.close()
            raise
        return vector


def _made(what: Any, num_envs: int, options: dict[str, Any]) -> Any:
    if isinstance(what, str) and "://" in what:
        return shoal.connect(what, num_envs, **options)
    if callable(what) and not isinstance(what, type):
        parameters = inspect.signature(what).parameters
        if "num_envs" in parameters:
            return what(num_envs=num_envs, **options)
        if any(map(_must_be_given, parameters.values())):
            return what(options)
    return shoal.make(what, num_envs, **options)


def _must_be_given(parameter: inspect.Parameter) -> bool:
    is_one = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return is_one and parameter.default is parameter.empty


def _known_elsewhere(what: VectorSource) -> VectorSource:
    """What can be made in a process in which the user has registered no environments."""
    if isinstance(what, str) and ":" not in what and not is_atari(what):
        return gymnasium.spec(what)
    return what


def _name_of(what: Any) -> str:
    if isinstance(what, EnvSpec):
        return what.id
    if isinstance(what, Kernel):
        return what.name
    if isinstance(what, str):
        return what
    if isinstance(what, Sequence):
        return f"{len(what)}-environments"
    name: str = getattr(what, "__name__", type(what).__name__)
    return name


def _check_options(options: dict[str, Any]) -> None:
    """Refuse, before anything is made, what RLlib cannot do with."""
    if "num_envs" in options:
        raise TypeError("the number of slots is config.env_runners(num_envs_per_env_runner=...)")
    mode = options.get("autoreset_mode")
    if mode is not None:
        _check_mode(AutoresetMode(mode))
    if options.get("info_format", "dict") != "dict":
        raise ValueError(f"RLlib takes infos as 'dict' only, got {options['info_format']!r}")
    if not options.get("copy", True):
        raise ValueError(_NOT_KEPT)


def _check_mode(mode: AutoresetMode) -> None:
    if mode is not AutoresetMode.NEXT_STEP:
        raise ValueError(
            "RLlib expects slots to be reset by the step after an episode's last, "
            f"autoreset_mode={AutoresetMode.NEXT_STEP}, got {mode}"
        )


def _check_vector(vector: Any, num_envs: int) -> None:
    if not isinstance(vector, gymnasium.vector.VectorEnv):
        raise TypeError(
            f"the registered function has made {vector!r}, expected a vector (a function that "
            "makes one environment has no argument that it must be given)"
        )
    if vector.num_envs != num_envs:
        raise ValueError(
            f"the registered vector has {vector.num_envs} slots, but num_envs_per_env_runner is "
            f"{num_envs}"
        )
    _check_mode(autoreset_mode_of(vector))
    base = vector.unwrapped
    if not getattr(base.pool if isinstance(base, VectorEnv) else base, "copy", True):
        raise ValueError(_NOT_KEPT)
