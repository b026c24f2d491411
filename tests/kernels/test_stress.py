"""The engine and the thread team without Python: many rounds, exceptions, and the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
TEAM = [NATIVE / "threads" / "team.cpp", NATIVE / "doorbell" / "sleep.cpp"]
ENGINE = [
    NATIVE / "kernels" / "engine.cpp",
    NATIVE / "kernels" / "engine_snapshots.cpp",
    NATIVE / "kernels" / "jobs.cpp",
    NATIVE / "kernels" / "seeding.cpp",
    NATIVE / "kernels" / "slot_memory.cpp",
    NATIVE / "kernels" / "classic" / "cartpole.cpp",
    *sorted((NATIVE / "image").glob("*.cpp")),
]
STRESS = [HERE / "stress.cpp", *TEAM, *ENGINE]
TEAM_EXCEPTIONS = [HERE / "team_exceptions.cpp", *TEAM]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler was found")


def compile_and_run(folder, sources, rounds, workers, spin, *options):
    """Compile a program of these sources and check that its rounds pass."""
    program = folder / "program"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
    subprocess.run([COMPILER, *flags, *sources, "-o", program], check=True)
    finished = subprocess.run(
        [program, str(rounds), str(workers), "spin" if spin else "sleep"],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == f"{rounds} rounds with {workers} workers\n"


@pytest.mark.parametrize("workers", [1, 3])
def test_exception_of_a_job_reaches_the_caller(tmp_path, workers):
    compile_and_run(tmp_path, TEAM_EXCEPTIONS, 3, workers, False, "-O1", "-g")


@pytest.mark.slow
@pytest.mark.parametrize("spin", [True, False])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_exceptions_under_sanitizers(tmp_path, sanitizer, spin):
    options = ["-O1", "-g", f"-fsanitize={sanitizer}"]
    compile_and_run(tmp_path, TEAM_EXCEPTIONS, 30, 3, spin, *options)


@pytest.mark.slow
def test_short_run_under_thread_sanitizer(tmp_path):
    compile_and_run(tmp_path, STRESS, 300, 3, True, "-O1", "-g", "-fsanitize=thread")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("spin", [True, False])
@pytest.mark.parametrize(
    "options",
    [("-O2",), ("-O1", "-g", "-fsanitize=thread"), ("-O1", "-g", "-fsanitize=address,undefined")],
    ids=["plain", "thread", "address"],
)
def test_many_rounds(tmp_path, options, spin):
    compile_and_run(tmp_path, STRESS, 5_000, 3, spin, *options)
