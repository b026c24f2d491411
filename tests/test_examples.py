"""The examples run unchanged, from any folder, and leave no files behind."""

import ast
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
"""Arguments that shorten the training of an example."""

UNCOMPILED = "dqn_with_tianshou"
"""Tianshou compiles its own functions with numba, which would take most of this example's time."""

ON_RAY = "on_a_ray_cluster"
"""Ray keeps its files, and the names of its sockets must be shorter than a test's folder."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    working, temporary = tmp_path / "working", tmp_path / "tmp"
    working.mkdir()
    temporary.mkdir()
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),  # torch creates it on import
    }
    if example.stem != ON_RAY:
        env["TMPDIR"] = str(temporary)
    if example.stem == UNCOMPILED:
        env["NUMBA_DISABLE_JIT"] = "1"
    done = subprocess.run(
        [sys.executable, example, *SHORTER.get(example.stem, ())],
        cwd=working,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d[\d,.]* (\w+ )*steps\b", done.stdout), done.stdout
    assert not [*working.iterdir(), *temporary.iterdir()]


def test_the_readme_lists_exactly_the_examples():
    listed = re.findall(r"^\| \[`([\w/]+\.py)`\]\(\1\)", (FOLDER / "README.md").read_text(), re.M)
    existing = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py")]
    assert sorted(listed) == sorted(existing)


def parsed(example):
    return ast.parse(example.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_docstring_of_an_example_says_what_to_expect(example):
    summary, *description = ast.get_docstring(parsed(example)).split("\n\n")
    assert summary.endswith(".")
    assert "\n" not in summary
    assert description


@pytest.mark.parametrize("example", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_an_example_imports_no_private_module(example):
    nodes = [*ast.walk(parsed(example))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    assert [name for name in names if re.match(r"shoal\b.*\._", name)] == []
