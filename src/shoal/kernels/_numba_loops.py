"""Compiled loops over the slots of a vector, for kernels written in Python.

A kernel in C receives a range of slots as one struct; see ``shoal_kernel.h``. A user's functions
handle one slot. This module generates a loop over a range of slots and compiles it together with
the user's function, so that numba inlines the function into the loop.
"""

from __future__ import annotations

import inspect
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from shoal._spaces import Layout
from shoal.errors import KernelDefinitionError

__all__ = ["LoopCompiler", "leaf_name"]

# The members of shoal_slots, eight bytes each.
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
_EXCEPTION_MESSAGE = "the function raised an exception"
_RANDOM_BYTES = 40
_OK = -1


def leaf_name(path: str) -> str:
    """Turn the path of a leaf into a name.

    >>> leaf_name("['body']['joints'][0]")
    'body_joints_0'
    """
    return "_".join(re.findall(r"[^\[\]']+", path))


def _record(names: Sequence[str]) -> np.dtype[Any]:
    """The dtype of a record of float64 fields; numba does not support an empty record."""
    return np.dtype([(name, np.float64) for name in names] or [("unused", np.float64)])


class LoopCompiler:
    """Compiles the functions of a user into loops over a range of slots.

    The source of a loop is generated from the leaves of the kernel's layouts. Leaves have different
    types, so numba needs a separate variable for each.
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
                'numba is not installed: pip install "shoal[numba]"'
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

    def compile(self, method: str) -> Any:
        """Compile the loop around a method; return the ``numba.cfunc``, which has an address."""
        self._check_arguments(method)
        numba = self._numba
        is_step = method == "step"
        lines = [
            f"def {self._name}_{method}(slots):",
            f"    members = carray(slots, {len(_MEMBERS)})",
        ]
        lines += [f"    {name} = members[{k}]" for k, name in enumerate(_MEMBERS)]
        lines.append("    states = carray(to_state(state), count)")
        lines.append("    parameter_record = carray(to_parameters(parameters), 1)[0]")
        scope: dict[str, Any] = {"carray": numba.carray}
        for key, dtype in self._dtypes.items():
            scope[f"to_{key}"] = _pointer_to(numba, numba.from_dtype(dtype))
        # As in C, a division by zero gives infinity and does not raise.
        scope["user"] = numba.njit(error_model="numpy")(self._functions[method])
        scope["to_message"] = _pointer_to(numba, numba.uint8)
        scope["text"] = np.frombuffer(f"{_EXCEPTION_MESSAGE}\0".encode(), np.uint8)

        rows = {kind: self._views(kind, lines, scope) for kind in self._kinds(is_step)}
        arguments = ["states[k]", f"random + {_RANDOM_BYTES} * k", "parameter_record"]
        if is_step:
            for result in ("rewards", "terminated", "truncated"):
                kind = numba.float64 if result == "rewards" else numba.uint8
                scope[f"to_{result}"] = _pointer_to(numba, kind)
                lines.append(f"    {result}_out = carray(to_{result}({result}), count)")
            arguments += [rows["actions"], rows["observations"]]
        else:
            lines.append("    option_record = carray(to_options(options), 1)[0]")
            arguments += ["option_record", rows["observations"]]
        if self._layouts["infos"].leaves:
            arguments.append(rows["infos"])
        call = f"user({', '.join(arguments)})"
        results = ["rewards_out[k]", "terminated_out[k]", "truncated_out[k]"]
        # An exception must not leave the loop, because the slot would be unknown.
        lines += [
            f"    failed = {_OK}",
            "    for k in range(count):",
            "        try:",
            f"            {', '.join(results)} = {call}" if is_step else f"            {call}",
            "        except Exception:",
            "            failed = k",
            "        if failed >= 0:",
            "            out = carray(to_message(message), text.size)",
            "            for i in range(text.size):",
            "                out[i] = text[i]",
            "            break",
            "    return failed",
        ]
        exec("\n".join(lines), scope)  # the source contains only validated names and numbers
        signature = numba.int64(numba.types.CPointer(numba.int64))
        try:
            return numba.cfunc(signature)(scope[f"{self._name}_{method}"])
        except Exception as error:  # numba raises many unrelated exception types
            raise KernelDefinitionError(
                f"kernel {self._name}: numba cannot compile {method!r}, which is called as "
                f"{method}({', '.join(self._arguments(method))}): {_first_line(error)}"
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
                f"kernel {self._name}: {method!r} is defined as {method}{found}, but is called as "
                f"{method}({', '.join(expected)}); is it a @staticmethod?"
            ) from None

    def _kinds(self, is_step: bool) -> list[str]:
        return ["observations", "infos", *(["actions"] if is_step else [])]

    def _views(self, kind: str, lines: list[str], scope: dict[str, Any]) -> str:
        """Add views of each leaf's rows; return the expression for the argument of row k."""
        rows = []
        leaves = self._layouts[kind].leaves
        if leaves:
            lines.append(f"    {kind}_of = carray(to_addresses({kind}), {len(leaves)})")
            scope["to_addresses"] = _pointer_to(self._numba, self._numba.int64)
        for k, leaf in enumerate(leaves):
            name = f"{kind}_{k}"
            # A scalar is written through an array of one element, and read as a number.
            by_value = kind == "actions" and not leaf.shape
            shape = ", ".join(["count", *map(str, leaf.shape or (() if by_value else (1,)))])
            number = self._numba.from_dtype(leaf.dtype)
            scope[f"to_{name}"] = _pointer_to(self._numba, number)
            lines.append(f"    {name} = carray(to_{name}({kind}_of[{k}]), ({shape},))")
            rows.append(f"{name}[k]")
        names = [leaf_name(leaf.path) for leaf in leaves]
        if names == [""]:
            return rows[0]
        if all(name.isdecimal() for name in names):
            return f"({', '.join(rows)},)"
        invalid = [name for name in names if not name.isidentifier() or name.startswith("_")]
        if invalid:
            raise KernelDefinitionError(
                f"kernel {self._name}: {kind} become attributes and cannot have the name "
                f"{invalid[0]!r}"
            )
        scope[f"{kind}_row"] = namedtuple(f"{kind}_row", names)
        return f"{kind}_row({', '.join(rows)})"


def _first_line(error: Exception) -> str:
    """The type of a numba error and its first informative line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    informative = [line for line in lines if not line.startswith(("Failed in nopython", "During:"))]
    return f"{type(error).__name__}: {(informative or lines or [''])[0]}"


def _pointer_to(numba: Any, kind: Any) -> Any:
    """A numba intrinsic that converts an address to a pointer to values of a type."""
    pointer = numba.types.CPointer(kind)

    def typed(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(address), generate

    return numba.extending.intrinsic(typed)
