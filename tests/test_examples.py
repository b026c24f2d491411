"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

import pytest

SHORTER = {"ppo_cleanrl": ["--total-steps", "12000"], "train_an_agent": ["20000"]}
"""Arguments of those that would train for longer than needs be to see that they run."""

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example, *SHORTER.get(example.stem, ())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "steps" in done.stdout
