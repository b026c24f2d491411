"""Virtual environments of contenders whose packages conflict with Shoal's.

A peer environment is the folder ``.venv-peer-<name>`` in the root of the repository, with the
packages of ``benchmarks/peers/<name>.txt``. It is created on first use and recreated when these
requirements or the interpreter change.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, TextIO

from benchmarks import ROOT
from shoal._bench.process import ContenderError, kill_group, last_line

__all__ = ["InPeer", "PeerError", "interpreter"]

_REQUIREMENTS = Path(__file__).with_name("peers")


class InPeer:
    """A contender that runs in a peer environment, where Shoal is not installed."""

    peer: ClassVar[str]
    """The name of the peer environment."""


class PeerError(ContenderError):
    """A peer environment could not be created; the message is the reason in one line."""


def interpreter(peer: str) -> Path:
    """Return the interpreter of a peer environment, which is created if necessary."""
    home = ROOT / f".venv-peer-{peer}"
    requirements = _REQUIREMENTS / f"{peer}.txt"
    python = home / "bin" / "python"
    stamp = home / "requirements.sha256"
    wanted = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        _install(home, python, requirements)
        stamp.write_text(wanted)
    return python


def _install(home: Path, python: Path, requirements: Path) -> None:
    print(f"installing {requirements.name} into {home.name} ...", file=sys.stderr)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    with (home / "install.log").open("w+") as log:
        _run([sys.executable, "-m", "venv", home], log)
        _run([python, "-m", "pip", "install", "--requirement", requirements], log)


def _run(command: list[str | Path], log: TextIO) -> None:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    try:
        status = process.wait()
    except BaseException:
        kill_group(process)
        raise
    if status:
        log.seek(0)
        raise PeerError(_meaningful_line(log.read()))


def _meaningful_line(output: str) -> str:
    """Return the last line of pip's output that names an error."""
    lines = output.splitlines()
    errors = [line for line in lines if "Error: " in line or line.startswith("ERROR: ")]
    return last_line(errors or lines)
