"""The RLlib examples run unmodified."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.rllib")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "rllib").glob("*.py"))


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Start all examples in parallel, because most of their time is the start of Ray."""
    processes = {
        example: subprocess.Popen(
            [sys.executable, example],
            cwd=tmp_path_factory.mktemp(example.stem),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for example in EXAMPLES
    }
    yield processes
    for process in processes.values():
        if process.poll() is None:
            process.terminate()
            process.communicate()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, running):
    output, errors = running[example].communicate(timeout=100)
    assert running[example].returncode == 0, errors
    assert "steps" in output
