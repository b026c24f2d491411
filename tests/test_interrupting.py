"""The tracer of the interrupt tests, and SIGINT in the test process."""

import inspect
import signal
import subprocess
import sys

import pytest

import shoal
from tests.interrupting import PACKAGE, Lines

IGNORED = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""


def in_file(path):
    """A function of two lines that belongs to this file."""
    functions = {}
    exec(compile("def counted():\n    x = 1\n    return x\n", path, "exec"), functions)
    return functions["counted"]


@pytest.mark.parametrize(
    "path", ["/clones/shoal/tests/test_it.py", "/clones/shoal/.venv/lib/pytest/main.py"]
)
def test_code_in_a_folder_called_shoal_is_not_the_package(path):
    with Lines(0) as lines:
        assert in_file(path)() == 1
    assert lines.where == ""


def test_code_of_the_package_is_interrupted():
    assert inspect.getfile(shoal).startswith(PACKAGE)
    with Lines(1) as lines:
        in_file(PACKAGE[0] + "made_up.py")()
    assert lines.where == "made_up.py:2 counted"


def test_sigint_reaches_the_test_process_and_its_children():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    script = "import signal; signal.raise_signal(signal.SIGINT)"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert child.returncode == -signal.SIGINT


def test_sigint_reaches_tests_that_were_started_with_sigint_ignored():
    test = f"{__file__}::{test_sigint_reaches_the_test_process_and_its_children.__name__}"
    command = [sys.executable, "-c", IGNORED, test]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
