"""Registration of vectors with RLlib."""

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
"""An argument of :func:`shoal.make`, the URL of a server, or a function that creates a vector."""

_COPY_NEEDED = "RLlib stores the returned arrays, so they must be copies: do not use copy=False"


def register(what: VectorSource, *, name: str | None = None, **options: Any) -> str:
    """Register a vector with RLlib and return its name for ``AlgorithmConfig.environment``.

    The number of slots is the config's ``num_envs_per_env_runner``. The config must set
    ``gym_env_vectorize_mode="vector_entry_point"``. Entries of ``env_config`` are additional
    options, which override ``options``.

    An env runner resets its vector with the sum of the config's seed and its worker index, which is
    incremented for each slot, as in RLlib's own vectors. Adjacent env runners therefore share most
    of their seeds. With ``seeding="independent"`` they share none.

    Args:
        what: An id, a spec, a kernel, a function that creates one environment, or a list of such
            functions, for :func:`shoal.make`; a URL for :func:`shoal.connect`; or a function that
            creates a vector. The latter is called with ``num_envs`` and the options as keyword
            arguments if it has a parameter ``num_envs``, or with ``env_config`` if it has one
            required argument, like RLlib's env creators.
        name: The registered name. By default it is derived from ``what``. A later registration with
            the same name replaces the earlier one.
        options: Options for the creation of the vector.

    Raises:
        ValueError: If the vector's autoreset mode is not supported by RLlib, or the vector reuses
            arrays that RLlib stores. Errors that can only be detected on the created vector are
            raised in the env runner.
        FactoryPicklingError: If ``what`` cannot be sent to env runners in other processes.

    Example:
        .. code-block:: python

            register("CartPole-v1", seeding="independent")
            register("tcp://rack-7:7711/Pick-v1", token="...")
            register(lambda num_envs: NormalizeReward(shoal.make("Pendulum-v1", num_envs)))
    """
    _check_options(options)
    creator = VectorCreator(_resolved_spec(what), options)
    try:
        pickled: bytes = cloudpickle.dumps(creator)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise FactoryPicklingError(
            f"{what!r} cannot be sent to env runners in other processes: {error}"
        ) from error
    if name is None:
        # RLlib interprets slashes and colons, and creates folders with this name.
        name = "-".join(["shoal", *re.findall(r"[\w.]+", _source_name(what))])
        if options or not isinstance(what, str):
            name = f"{name}-{crc32(pickled):08x}"
    register_env(name, creator)
    return name


class VectorCreator:
    """The registered function, which creates the vector of an env runner.

    Args:
        what: The source of the vector: see :func:`register`.
        options: Options for the creation of the vector.
    """

    def __init__(self, what: VectorSource, options: dict[str, Any]) -> None:
        self._what = what
        self._options = options

    def __call__(self, env_config: dict[str, Any]) -> Vector:
        """Create the vector. RLlib passes the number of slots as the entry ``num_envs``."""
        config = dict(env_config)
        if "num_envs" not in config:
            raise ValueError(
                "a vector was registered, but RLlib requested a single environment: set "
                "config.env_runners(gym_env_vectorize_mode='vector_entry_point')"
            )
        num_envs = config.pop("num_envs")
        vector: Vector = _create(self._what, num_envs, {**self._options, **config})
        try:
            _check_vector(vector, num_envs)
        except (TypeError, ValueError):
            if hasattr(vector, "close"):
                vector.close()
            raise
        return vector


def _create(what: Any, num_envs: int, options: dict[str, Any]) -> Any:
    if isinstance(what, str) and "://" in what:
        return shoal.connect(what, num_envs, **options)
    if callable(what) and not isinstance(what, type):
        parameters = inspect.signature(what).parameters
        if "num_envs" in parameters:
            return what(num_envs=num_envs, **options)
        if any(map(_is_required, parameters.values())):
            return what(options)
    return shoal.make(what, num_envs, **options)


def _is_required(parameter: inspect.Parameter) -> bool:
    is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return is_positional and parameter.default is parameter.empty


def _resolved_spec(what: VectorSource) -> VectorSource:
    """Replace an id by its spec, because other processes may not have registered the id."""
    if isinstance(what, str) and ":" not in what and not is_atari(what):
        return gymnasium.spec(what)
    return what


def _source_name(what: Any) -> str:
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
    """Raise an error for options that RLlib does not support."""
    if "num_envs" in options:
        raise TypeError(
            "num_envs is not an option: set config.env_runners(num_envs_per_env_runner=...)"
        )
    mode = options.get("autoreset_mode")
    if mode is not None:
        _check_mode(AutoresetMode(mode))
    if options.get("info_format", "dict") != "dict":
        raise ValueError(f"info_format must be 'dict' for RLlib, got {options['info_format']!r}")
    if not options.get("copy", True):
        raise ValueError(_COPY_NEEDED)


def _check_mode(mode: AutoresetMode) -> None:
    if mode is not AutoresetMode.NEXT_STEP:
        raise ValueError(
            "RLlib requires that slots are reset by the step after an episode's last "
            f"(autoreset_mode={AutoresetMode.NEXT_STEP}), got {mode}"
        )


def _check_vector(vector: Any, num_envs: int) -> None:
    if not isinstance(vector, gymnasium.vector.VectorEnv):
        raise TypeError(
            f"the registered function must return a vector, got {vector!r} (a function that "
            "creates one environment must have no required arguments)"
        )
    if vector.num_envs != num_envs:
        raise ValueError(
            f"the registered vector has {vector.num_envs} slots, but num_envs_per_env_runner is "
            f"{num_envs}"
        )
    _check_mode(autoreset_mode_of(vector))
    base = vector.unwrapped
    if not getattr(base.pool if isinstance(base, VectorEnv) else base, "copy", True):
        raise ValueError(_COPY_NEEDED)
