"""Kernels written in Python and compiled by numba."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from shoal import _native
from shoal._spaces import Layout
from shoal.errors import KernelDefinitionError
from shoal.kernels._definition import Kernel, check_limit
from shoal.kernels._numba_loops import LoopCompiler, leaf_name

__all__ = ["numba_kernel"]


def numba_kernel(
    *,
    observation_space: Space[Any],
    action_space: Space[Any],
    state: Any,
    infos: Mapping[str, Any] | None = None,
    parameters: Mapping[str, float] | None = None,
    options: Mapping[str, float] | None = None,
    max_episode_steps: int | None = None,
    check_nan: bool = True,
) -> Callable[[type], Kernel]:
    """Turn a class into a kernel; a decorator.

    The class has two static methods, which numba compiles. Each handles one slot:

    - ``reset(state, random, parameters, options, observation)`` starts an episode.
    - ``step(state, random, parameters, action, observation)`` takes a step and returns
      ``(reward, terminated, truncated)``.

    An optional third static method, ``render(state)``, is plain Python and returns an image of
    shape (height, width, 3) and dtype uint8.

    Both ``reset`` and ``step`` must write the whole observation; elements that are not written are
    undefined. With ``infos``, both take one more argument, ``info``, and write the infos by name:
    ``info.energy[0] = 1.0``. An exception raised by either is reported as a failure of the slot.

    ``state``, ``parameters`` and ``options`` are records with the fields given to the decorator.
    ``random`` is the argument of :func:`random_double`, :func:`random_uniform` and
    :func:`random_below`. Observations and actions are arrays; for a Tuple space they are tuples of
    arrays, and for a Dict space named tuples: ``action.push``. (Gymnasium sorts the keys of a Dict
    space that is created from a dict.) A scalar is written through an array of one element, and
    read as a number. numba does not check indices unless ``NUMBA_BOUNDSCHECK=1`` is set.

    Args:
        observation_space: The observation space of one slot; its arrays have fixed shapes.
        action_space: The action space of one slot; its arrays have fixed shapes.
        state: The state of one slot, as the dtype of a NumPy record: ``[("speed", "f8")]``.
        infos: A dtype, or a pair of dtype and shape, for each info.
        parameters: The parameters of the kernel and their defaults. They are set when a vector is
            created.
        options: The options of ``reset`` and their defaults.
        max_episode_steps: The number of steps after which an episode is truncated.
        check_nan: Whether a NaN in an observation or a reward is reported as a failure.

    Raises:
        KernelDefinitionError: The class or an argument is invalid, or numba cannot compile it.
        DependencyNotInstalled: numba is not installed.
    """

    def decorate(cls: type) -> Kernel:
        functions = {
            name: value.__func__ if isinstance(value, staticmethod) else value
            for name, value in vars(cls).items()
            if name in ("reset", "step", "render")
        }
        return _compile(
            cls.__name__,
            functions,
            observation_space=observation_space,
            action_space=action_space,
            state=state,
            infos=dict(infos or {}),
            parameters=dict(parameters or {}),
            options=dict(options or {}),
            max_episode_steps=max_episode_steps,
            check_nan=check_nan,
        )

    return decorate


def _compile(
    name: str,
    functions: dict[str, Any],
    *,
    observation_space: Space[Any],
    action_space: Space[Any],
    state: Any,
    infos: dict[str, Any],
    parameters: dict[str, float],
    options: dict[str, float],
    max_episode_steps: int | None,
    check_nan: bool,
) -> Kernel:
    recipe = partial(
        _compile,
        name,
        functions,
        observation_space=observation_space,
        action_space=action_space,
        state=state,
        infos=infos,
        parameters=parameters,
        options=options,
        max_episode_steps=max_episode_steps,
        check_nan=check_nan,
    )
    for needed in ("reset", "step"):
        if not callable(functions.get(needed)):
            raise KernelDefinitionError(f"kernel {name} needs a function {needed!r}")
    check_limit(max_episode_steps)
    state_dtype = _aligned(state, name)
    info_space = spaces.Dict([(key, _info_space(kind)) for key, kind in infos.items()])
    layouts = {
        "observations": Layout.of(observation_space),
        "actions": Layout.of(action_space),
        "infos": Layout.of(info_space),
    }
    for kind, layout in layouts.items():
        if layout.objects or (kind != "infos" and not layout.leaves):
            raise KernelDefinitionError(
                f"kernel {name}: the {kind} of {layout.space} have no fixed shape"
            )
    compiler = LoopCompiler(name, functions, layouts, state_dtype, list(parameters), list(options))
    reset, step = compiler.compile("reset"), compiler.compile("step")
    native = _native.Kernel.of_functions(
        {
            "name": name,
            "state_bytes": state_dtype.itemsize,
            **{kind: _leaves(layout) for kind, layout in layouts.items()},
            "fields": _fields(state_dtype),
            "parameters": {key: float(value) for key, value in parameters.items()},
            "options": {key: float(value) for key, value in options.items()},
            "max_episode_steps": max_episode_steps or 0,
            "reset": reset.address,
            "step": step.address,
        },
        (reset, step),
    )
    render = functions.get("render")
    return Kernel(
        native,
        observation_space,
        action_space,
        max_episode_steps=max_episode_steps,
        metadata={"render_modes": ["rgb_array"] if render else [], "render_fps": 30},
        check_nan=check_nan,
        paint=render,
        recipe=recipe,
    )


def _aligned(state: Any, name: str) -> np.dtype[Any]:
    """The dtype of a slot's state, aligned like a C struct."""
    dtype: np.dtype[Any] = np.dtype(state, align=True)
    if dtype.names is None:
        raise KernelDefinitionError(
            f"kernel {name}: state must be a record dtype such as [('speed', np.float64)], "
            f"got {state}"
        )
    return dtype


def _info_space(kind: Any) -> Space[Any]:
    """The space of an info, given as a dtype or a pair of dtype and shape."""
    base, shape = kind if isinstance(kind, tuple) else (kind, ())
    dtype: Any = np.dtype(base)
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    if dtype.kind == "b":
        return spaces.Box(0, 1, shape, np.bool_)
    limits = np.iinfo(dtype)
    return spaces.Box(limits.min, limits.max, shape, dtype.type)


def _leaves(layout: Layout) -> list[dict[str, Any]]:
    return [
        {
            "name": leaf_name(leaf.path) or None,
            "dtype": leaf.dtype.name,
            "shape": list(leaf.shape),
            "offset": 0,
        }
        for leaf in layout.leaves
    ]


def _fields(dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    assert dtype.names is not None
    assert dtype.fields is not None
    fields = []
    for name in dtype.names:
        kind, offset = dtype.fields[name][:2]
        base, shape = kind.subdtype or (kind, ())
        fields.append(
            {"name": name, "dtype": base.name, "shape": list(shape), "offset": int(offset)}
        )
    return fields
