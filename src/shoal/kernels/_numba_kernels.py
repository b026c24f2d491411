"""Kernels written in Python and compiled by numba.

A kernel in C is given a run of slots as one struct; see ``shoal_kernel.h``. Around the user's
functions, which speak of a single slot, a loop over such a run is written here and compiled
together with them, so that they are inlined into it.
"""

from __future__ import annotations

import inspect
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.error import DependencyNotInstalled

from shoal import _native
from shoal._spaces import Layout
from shoal.errors import KernelDefinitionError
from shoal.kernels._definition import Kernel, check_limit

__all__ = ["compile_kernel"]

# The members of shoal_slots, each of which takes eight bytes.
_MEMBERS = (
    "first",
    "count",
    "state",
    "random",
    "actions",
    "observations",
    "rewards",
    "terminated",
    "truncated",
    "infos",
    "parameters",
    "options",
    "tables",
    "message",
)
_ARGUMENTS = {
    "reset": ["state", "random", "parameters", "options", "observation"],
    "step": ["state", "random", "parameters", "action", "observation"],
}
_RAISED = "the function raised an exception"
_RANDOM_BYTES = 40
_OK = -1


def compile_kernel(
    name: str,
    functions: Mapping[str, Any],
    *,
    observation_space: Space[Any],
    action_space: Space[Any],
    state: Any,
    infos: Mapping[str, Any],
    parameters: Mapping[str, float],
    options: Mapping[str, float],
    max_episode_steps: int | None,
    check_nan: bool,
) -> Kernel:
    """Compile ``reset`` and ``step`` into a kernel; see :class:`shoal.kernels._api.KernelMaker`."""
    functions = {
        key: value.__func__ if isinstance(value, staticmethod) else value
        for key, value in functions.items()
        if key in ("reset", "step", "render")
    }
    recipe = partial(
        compile_kernel,
        name,
        functions,
        observation_space=observation_space,
        action_space=action_space,
        state=state,
        infos=dict(infos),
        parameters=dict(parameters),
        options=dict(options),
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
                f"kernel {name}: {kind} of {layout.space} have no fixed shape"
            )
    loops = _Loops(name, functions, layouts, state_dtype, list(parameters), list(options))
    reset, step = loops.compiled("reset"), loops.compiled("step")
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
    """The record of a slot's state, with its fields where a compiler wants them."""
    dtype: np.dtype[Any] = np.dtype(state, align=True)
    if dtype.names is None:
        raise KernelDefinitionError(
            f"kernel {name}: state must name its fields, as in [('speed', np.float64)], got {state}"
        )
    return dtype


def _info_space(kind: Any) -> Space[Any]:
    """The space of an info column: a dtype, or a dtype and a shape."""
    given, shape = kind if isinstance(kind, tuple) else (kind, ())
    dtype: Any = np.dtype(given)
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    if dtype.kind == "b":
        return spaces.Box(0, 1, shape, np.bool_)
    limits = np.iinfo(dtype)
    return spaces.Box(limits.min, limits.max, shape, dtype.type)


def _leaves(layout: Layout) -> list[dict[str, Any]]:
    return [
        {
            "name": _name(leaf.path) or None,
            "dtype": leaf.dtype.name,
            "shape": list(leaf.shape),
            "offset": 0,
        }
        for leaf in layout.leaves
    ]


def _name(path: str) -> str:
    """A name for a leaf: where it stands, in one word.

    >>> _name("['body']['joints'][0]")
    'body_joints_0'
    """
    return "_".join(re.findall(r"[^\[\]']+", path))


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


def _record(names: Sequence[str]) -> np.dtype[Any]:
    """Numbers in a row as a record; numba knows no empty one."""
    return np.dtype([(name, np.float64) for name in names] or [("nothing", np.float64)])


class _Loops:
    """Loops over a run of slots, around the functions of a user.

    The text of a loop is put together for the leaves that the kernel has: numba needs to see each
    of them by itself, since they differ in their types.
    """

    def __init__(
        self,
        name: str,
        functions: Mapping[str, Any],
        layouts: Mapping[str, Layout],
        state: np.dtype[Any],
        parameters: Sequence[str],
        options: Sequence[str],
    ) -> None:
        try:
            import numba
        except ImportError as error:
            raise DependencyNotInstalled(
                'numba is not installed, run `pip install "shoal[numba]"`'
            ) from error
        self._numba = numba
        self._name = name
        self._functions = functions
        self._layouts = layouts
        self._dtypes = {
            "state": state,
            "parameters": _record(parameters),
            "options": _record(options),
        }

    def compiled(self, method: str) -> Any:
        """The address and the owner of a compiled loop: what ``numba.cfunc`` returns."""
        self._check_arguments(method)
        numba = self._numba
        is_step = method == "step"
        lines = [
            f"def {self._name}_{method}(slots):",
            f"    members = carray(slots, {len(_MEMBERS)})",
        ]
        lines += [f"    {name} = members[{k}]" for k, name in enumerate(_MEMBERS)]
        lines.append("    states = carray(to_state(state), count)")
        lines.append("    given = carray(to_parameters(parameters), 1)[0]")
        scope: dict[str, Any] = {"carray": numba.carray}
        for key, dtype in self._dtypes.items():
            scope[f"to_{key}"] = _pointer_to(numba, numba.from_dtype(dtype))
        # As in C: a division by zero gives infinity, and raises nothing.
        scope["user"] = numba.njit(error_model="numpy")(self._functions[method])
        scope["to_message"] = _pointer_to(numba, numba.uint8)
        scope["raised"] = np.frombuffer(f"{_RAISED}\0".encode(), np.uint8)

        rows = {kind: self._views(kind, lines, scope) for kind in self._kinds(is_step)}
        arguments = ["states[k]", f"random + {_RANDOM_BYTES} * k", "given"]
        if is_step:
            for result in ("rewards", "terminated", "truncated"):
                kind = numba.float64 if result == "rewards" else numba.uint8
                scope[f"to_{result}"] = _pointer_to(numba, kind)
                lines.append(f"    {result}_out = carray(to_{result}({result}), count)")
            arguments += [rows["actions"], rows["observations"]]
        else:
            lines.append("    chosen = carray(to_options(options), 1)[0]")
            arguments += ["chosen", rows["observations"]]
        if self._layouts["infos"].leaves:
            arguments.append(rows["infos"])
        call = f"user({', '.join(arguments)})"
        results = ["rewards_out[k]", "terminated_out[k]", "truncated_out[k]"]
        # What is raised must not leave the loop, or nobody would know in which slot it was.
        lines += [
            f"    failed = {_OK}",
            "    for k in range(count):",
            "        try:",
            f"            {', '.join(results)} = {call}" if is_step else f"            {call}",
            "        except Exception:",
            "            failed = k",
            "        if failed >= 0:",
            "            text = carray(to_message(message), raised.size)",
            "            for letter in range(raised.size):",
            "                text[letter] = raised[letter]",
            "            break",
            "    return failed",
        ]
        exec("\n".join(lines), scope)  # only names and numbers of our own are in this text
        signature = numba.int64(numba.types.CPointer(numba.int64))
        try:
            return numba.cfunc(signature)(scope[f"{self._name}_{method}"])
        except Exception as error:  # whatever a compiler may stumble over
            raise KernelDefinitionError(
                f"kernel {self._name}: numba cannot compile its {method!r}, which is called as "
                f"{method}({', '.join(self._arguments(method))}): {_essence(error)}"
            ) from error

    def _arguments(self, method: str) -> list[str]:
        return [*_ARGUMENTS[method], *(["info"] if self._layouts["infos"].leaves else [])]

    def _check_arguments(self, method: str) -> None:
        expected = self._arguments(method)
        try:
            inspect.signature(self._functions[method]).bind(*expected)
        except TypeError:
            found = inspect.signature(self._functions[method])
            raise KernelDefinitionError(
                f"kernel {self._name}: its {method!r} is written as {method}{found}, but called as "
                f"{method}({', '.join(expected)}); is it a @staticmethod?"
            ) from None

    def _kinds(self, is_step: bool) -> list[str]:
        return ["observations", "infos", *(["actions"] if is_step else [])]

    def _views(self, kind: str, lines: list[str], scope: dict[str, Any]) -> str:
        """Add views of all rows of each leaf; return what the user's function is given of row k."""
        rows = []
        leaves = self._layouts[kind].leaves
        if leaves:
            lines.append(f"    {kind}_of = carray(to_addresses({kind}), {len(leaves)})")
            scope["to_addresses"] = _pointer_to(self._numba, self._numba.int64)
        for k, leaf in enumerate(leaves):
            name = f"{kind}_{k}"
            # A single number is written through an array of one, and read as it is.
            by_value = kind == "actions" and not leaf.shape
            shape = ", ".join(["count", *map(str, leaf.shape or (() if by_value else (1,)))])
            number = self._numba.from_dtype(leaf.dtype)
            scope[f"to_{name}"] = _pointer_to(self._numba, number)
            lines.append(f"    {name} = carray(to_{name}({kind}_of[{k}]), ({shape},))")
            rows.append(f"{name}[k]")
        names = [_name(leaf.path) for leaf in leaves]
        if names == [""]:
            return rows[0]
        if all(name.isdecimal() for name in names):
            return f"({', '.join(rows)},)"
        wrong = [name for name in names if not name.isidentifier() or name.startswith("_")]
        if wrong:
            raise KernelDefinitionError(
                f"kernel {self._name}: {kind} become attributes, and cannot be called {wrong[0]!r}"
            )
        scope[f"{kind}_row"] = namedtuple(f"{kind}_row", names)
        return f"{kind}_row({', '.join(rows)})"


def _essence(error: Exception) -> str:
    """What a user needs of an error of numba's, which tells of all that it has tried."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in nopython", "During:"))]
    return f"{type(error).__name__}: {(telling or lines or [''])[0]}"


def _pointer_to(numba: Any, kind: Any) -> Any:
    """A function for compiled code: from an address to a pointer to values of a type."""
    pointer = numba.types.CPointer(kind)

    def typed(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address), generate

    return numba.extending.intrinsic(typed)
