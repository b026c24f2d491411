"""``shoal new-kernel`` writes a kernel that compiles and passes its tests."""

import subprocess
import sys

import pytest

import shoal
from shoal._cli.new_kernel import write_kernel


def test_new_kernel_compiles_and_passes_its_tests(tmp_path):
    folder = write_kernel("CatchBall", tmp_path / "new")
    assert sorted(path.name for path in folder.iterdir()) == [
        "Makefile",
        "README.md",
        "catch_ball.c",
        "test_catch_ball.py",
    ]
    ended = subprocess.run(
        ["make", "test", f"PYTHON={sys.executable}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "passed" in ended.stdout
    with pytest.raises(FileExistsError):
        write_kernel("CatchBall", folder)
    with pytest.raises(ValueError, match="letters, digits"):
        write_kernel("catch-ball")


def shoal_command(*arguments, cwd):
    command = [sys.executable, "-c", "from shoal._cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_command_writes_a_kernel(tmp_path):
    ended = shoal_command("new-kernel", "Slide", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "make test" in ended.stdout
    assert (tmp_path / "slide" / "slide.c").exists()
    again = shoal_command("new-kernel", "Slide", cwd=tmp_path)
    assert again.returncode == 1
    assert "exists already" in again.stderr
    assert shoal_command("version", cwd=tmp_path).stdout.strip() == shoal.__version__


def test_unwritable_folder_is_reported_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    ended = shoal_command("new-kernel", "Slide", "--folder", "file/below", cwd=tmp_path)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "file" in ended.stderr
