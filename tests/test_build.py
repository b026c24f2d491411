"""Building the package."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CMAKE = shutil.which("cmake")


@pytest.mark.skipif(CMAKE is None, reason="cmake is not on the path")
def test_missing_compiler_is_reported(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cmake", "make"):
        if found := shutil.which(name):
            (tools / name).symlink_to(os.path.realpath(found))
    done = subprocess.run(
        [CMAKE, "-S", ROOT, "-B", tmp_path / "build"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert "Shoal needs a C++17 compiler: install g++ or clang++ and try again." in lines
