"""Every sample of the documentation runs, and every command line in it can be parsed."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.command_line import parse
from tests.docs.pages import PAGES, ROOT, name_of, needs, samples

PATH = os.pathsep.join(map(os.path.abspath, [ROOT, *os.getenv("PYTHONPATH", "").split(os.pathsep)]))
"""``PYTHONPATH`` for the process of a page: the repository, then the current one."""


def pages_with(kind, **marks):
    """Parametrize a test over the pages that have a sample of this kind with these marks."""

    def has_sample(page):
        return any(
            sample.kind == kind
            and not sample.not_run
            and all(getattr(sample, name) == mark for name, mark in marks.items())
            for sample in samples(page)
        )

    return pytest.mark.parametrize("page", [*filter(has_sample, PAGES)], ids=name_of)


def run(page, folder, *options):
    for module in needs(page):
        pytest.importorskip(module)
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_page", page, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr


@pages_with("python", is_slow=False)
def test_samples_run(page, tmp_path):
    run(page, tmp_path)


@pytest.mark.slow
@pages_with("python", is_slow=True)
def test_slow_samples_run(page, tmp_path):
    run(page, tmp_path, "--slow")


@pages_with("python")
def test_samples_that_are_not_run_compile(page):
    for sample in samples(page):
        if sample.kind == "python":
            compile(sample.text, f"{name_of(page)}:{sample.line}", "exec")


@pages_with("console")
def test_command_lines_can_be_parsed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for sample in samples(page):
        if sample.kind != "console" or sample.not_run:
            continue
        for line in re.sub(r"\\\n", " ", sample.text).splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] == ["$", "shoal"]:
                parse(words[2:])


@pytest.mark.parametrize(
    "line", ["no-such-command", "serve CartPole-v1 --bound x", "train", "eval a --games many"]
)
def test_a_wrong_command_line_cannot_be_parsed(line):
    with pytest.raises(Exception, match=r"(?i)no such|missing|a valid"):
        parse(line.split())
