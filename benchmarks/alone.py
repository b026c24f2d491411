"""Calls a function in a new process.

That process is ``python -m benchmarks.alone PICKLE``, with the pickle of the function and its
arguments in hexadecimal digits. It writes the pickle of the result to standard output.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import TypeVar

from benchmarks import ROOT
from shoal._bench.process import ContenderError, kill_group, last_line

__all__ = ["call_alone"]

Result = TypeVar("Result")


def call_alone(
    function: Callable[..., Result], *arguments: object, timeout: float = 1800.0
) -> Result:
    """Call a function in a new interpreter and return its result.

    The process and everything that it started has ended when the call returns.

    Args:
        function: A picklable function.
        arguments: Its arguments, which must be picklable too.
        timeout: Seconds after which the process is killed.

    Raises:
        ContenderError: The function raised an exception or exceeded the timeout.
    """
    call = pickle.dumps((function, arguments)).hex()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.alone", call],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            process_group=0,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ContenderError(f"not done within {timeout:g} s") from None
        finally:
            kill_group(process)
        if status:
            errors.seek(0)
            raise ContenderError(last_line(errors.read().decode(errors="replace").split("\n")))
        output.seek(0)
        result: Result = pickle.load(output)
        return result


def _answer(call: str) -> None:
    with os.fdopen(os.dup(1), "wb") as result:
        # Output of the function must not mix with the result.
        os.dup2(2, 1)
        function, arguments = pickle.loads(bytes.fromhex(call))
        pickle.dump(function(*arguments), result)


if __name__ == "__main__":
    _answer(sys.argv[1])
