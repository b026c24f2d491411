"""The examples run as they stand, from anywhere, and leave nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))

SHORTER = {
    "atari_dqn": ["320"],
    "dqn_with_tianshou": ["256"],
    "ppo_cleanrl": ["--total-steps", "6000"],
    "ppo_with_skrl": ["4"],
    "ppo_with_torchrl": ["2"],
    "self_play_hockey": ["40000"],
    "train_an_agent": ["10000"],
    "train_with_stable_baselines3": ["2048"],
}
"""Arguments of those that would train for longer than needs be to see that they run."""

UNCOMPILED = "dqn_with_tianshou"
"""Tianshou compiles with numba what it uses: most of this example's time, and nothing of ours."""

ON_RAY = "on_a_ray_cluster"
"""Ray keeps its own files, and its sockets' names must be shorter than a test's folder is."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    here, temporary = tmp_path / "here", tmp_path / "tmp"
    here.mkdir()
    temporary.mkdir()
    surroundings = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),  # which torch makes when imported
    }
    if example.stem != ON_RAY:
        surroundings["TMPDIR"] = str(temporary)
    if example.stem == UNCOMPILED:
        surroundings["NUMBA_DISABLE_JIT"] = "1"
    done = subprocess.run(
        [sys.executable, example, *SHORTER.get(example.stem, ())],
        cwd=here,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "steps" in done.stdout
    assert not [*here.iterdir(), *temporary.iterdir()]


def test_the_list_names_exactly_the_examples_that_are_there():
    listed = re.findall(r"^\| \[`([\w/]+\.py)`\]\(\1\)", (FOLDER / "README.md").read_text(), re.M)
    there = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py")]
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_one_should_see(example):
    title, blank, *rest = example.read_text().splitlines()
    assert title.startswith('"""')
    assert title.endswith(".")
    assert not blank
    assert rest
