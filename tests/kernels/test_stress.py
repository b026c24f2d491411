"""Engine and threads without Python: thousands of rounds, and under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
SOURCES = [
    HERE / "stress.cpp",
    NATIVE / "kernels" / "engine.cpp",
    NATIVE / "kernels" / "jobs.cpp",
    NATIVE / "kernels" / "seeding.cpp",
    NATIVE / "kernels" / "classic" / "cartpole.cpp",
    NATIVE / "threads" / "team.cpp",
    *sorted((NATIVE / "doorbell").glob("sleep.cpp")),
    *sorted((NATIVE / "image").glob("*.cpp")),
]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")


def stress(folder, rounds, workers, spin, *options):
    program = folder / "stress"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
    subprocess.run([COMPILER, *flags, *SOURCES, "-o", program], check=True)
    finished = subprocess.run(
        [program, str(rounds), str(workers), "spin" if spin else "sleep"],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == f"{rounds} rounds with {workers} workers\n"


@pytest.mark.slow
def test_under_thread_sanitizer(tmp_path):
    stress(tmp_path, 300, 3, True, "-O1", "-g", "-fsanitize=thread")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("spin", [True, False])
@pytest.mark.parametrize(
    "options",
    [("-O2",), ("-O1", "-g", "-fsanitize=thread"), ("-O1", "-g", "-fsanitize=address,undefined")],
    ids=["plain", "thread", "address"],
)
def test_many_rounds(tmp_path, options, spin):
    stress(tmp_path, 5_000, 3, spin, *options)
