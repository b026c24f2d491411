"""The doorbell without Python: millions of rounds, also under ThreadSanitizer."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = [HERE / "stress.cpp", *sorted((HERE.parents[1] / "native" / "doorbell").glob("*.cpp"))]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    programs = {}

    def compiled(*options):
        if options not in programs:
            program = tmp_path_factory.mktemp("doorbell") / "stress"
            flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
            subprocess.run([COMPILER, *flags, *SOURCES, "-o", program], check=True)
            programs[options] = program
        return programs[options]

    return compiled


def stress(program, rounds, workers, sleep, spin):
    arguments = [program, rounds, workers, sleep, "spin" if spin else "sleep"]
    finished = subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, timeout=1500, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == f"{rounds} rounds with {workers} workers\n"


CONFIGURATIONS = pytest.mark.parametrize(
    ("workers", "sleep", "spin"),
    [(1, "futex", True), (1, "pipe", True), (3, "futex", False), (3, "pipe", False)],
)


@CONFIGURATIONS
def test_thousands_of_rounds(compiled, workers, sleep, spin):
    stress(compiled("-O2"), 20_000, workers, sleep, spin)


@CONFIGURATIONS
def test_under_thread_sanitizer(compiled, workers, sleep, spin):
    stress(compiled("-O1", "-g", "-fsanitize=thread"), 5_000, workers, sleep, spin)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_million_rounds(compiled):
    stress(compiled("-O2"), 7_000_000, 1, "futex", True)
    stress(compiled("-O2"), 2_000_000, 2, "futex", False)
    stress(compiled("-O2"), 1_000_000, 2, "pipe", False)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@CONFIGURATIONS
def test_many_rounds_under_thread_sanitizer(compiled, workers, sleep, spin):
    stress(compiled("-O1", "-g", "-fsanitize=thread"), 200_000, workers, sleep, spin)
