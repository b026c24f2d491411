"""The folder of a run: file layout, locking, run.json and copies of agent files."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from shoal.errors import CheckpointError, ConfigError, RunInUseError
from shoal.train._agents.base import RUN_AGENTS, read_agent
from shoal.train._config import Config
from shoal.train._config.loading import convert
from shoal.train._files import UNFINISHED, replaced, write_file
from shoal.train._tasks.sources import EnvSource

__all__ = ["RunFolder", "RunPlan", "training_env"]

_PATIENCE = 2.0
"""Timeout in seconds for the lock of a folder.

Forked workers of a killed run hold the lock until they notice that their parent has ended."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a run, stored in ``run.json`` so that the run can be resumed."""

    name: str
    config: Config
    num_envs: int
    seed: int
    device: str
    eval_freq_steps: int
    eval_num_games: int
    eval_opponents: list[str]
    threads: int | None = None
    """CPU threads per torch operation; stored because results depend on it in their last bits."""
    initial_agent: str | None = None
    agent_copies: dict[str, str] = {}
    """Paths of agent files used by the run, and their copies relative to the run's folder."""
    env_from_caller: bool = False
    """Whether the environment was passed as a Python object and must be passed again to resume."""

    @property
    def keep_mode(self) -> bool:
        """Whether rackets can hold the puck in the last phase."""
        return self.config.curriculum.phases[-1].environment.keep_mode


def training_env(plan: RunPlan, env: EnvSource | None) -> EnvSource:
    """Return ``env`` if it is not None, otherwise the environment named in the plan.

    Raises:
        ValueError: If ``env`` is None and the run was started with a Python object.
    """
    if env is not None:
        return env
    if plan.env_from_caller:
        raise ValueError(
            f"the run {plan.name} was started with environments created in Python "
            f"({plan.config.task.id}): pass them again as env=..."
        )
    return plan.config.task.id


class RunFolder:
    """The folder of a run.

    Args:
        path: The path of the folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.league = self.path / "league"
        self.best_agent, self.final_agent = (self.path / name for name in RUN_AGENTS)
        self.video = self.path / "video.mp4"
        self._plan = self.path / "run.json"
        self._result = self.path / "result.json"

    @classmethod
    def create(cls, base: str | Path, name: str | None, config: Config, num_envs: int) -> RunFolder:
        """Create a folder; the default name consists of date, agent and number of environments."""
        base = Path(base)
        if name is not None:
            if not name.strip("./ ") or Path(name).is_absolute() or ".." in Path(name).parts:
                raise ValueError(f"run_name must be the name of a folder in {base}, got {name!r}")
            folder = cls(base / name)
            if folder._plan.exists():
                raise FileExistsError(
                    f"there is a run {name} in {base} already: choose another name, or resume it "
                    f"with `shoal resume {folder.path}`"
                )
            folder.path.mkdir(parents=True, exist_ok=True)
            return folder
        vec = f"_vec{num_envs}" if num_envs > 1 else ""
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        for number in itertools.count(1):
            suffix = f"_{number}" if number > 1 else ""
            folder = cls(base / f"{now}_{config.agent.type}{vec}{suffix}")
            try:
                folder.path.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
        raise AssertionError  # unreachable: itertools.count is infinite

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other runs, also in the same process.

        Raises:
            RunInUseError: If the folder is locked.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    def remove_unfinished_files(self) -> None:
        """Remove files that a killed run has not finished writing."""
        for file in self.path.rglob(f"*{UNFINISHED}"):
            file.unlink()

    def delete_logs(self) -> None:
        """Delete all logs."""
        for logs in (self.path / "logs", self.path / "tensorboard"):
            if logs.is_dir():
                shutil.rmtree(logs)

    def copy_agents(self, paths: Iterable[str]) -> dict[str, str]:
        """Copy agent files into the folder, so that a resumed run uses the same agents.

        Returns:
            The relative path of the copy for each path.
        """
        copies = {}
        for number, path in enumerate(dict.fromkeys(paths)):
            copies[path] = f"opponents/{number}.agent"
            write_file(self.path / copies[path], read_agent(path))
        return copies

    def agent_file(self, path: str, plan: RunPlan) -> Path:
        """Return the run's copy of an agent file, or the file itself if it was not copied."""
        return self.path / plan.agent_copies[path] if path in plan.agent_copies else Path(path)

    def discard(self) -> None:
        """Remove the folder of a run that failed to start, unless it contains other files."""
        if (self.path / "opponents").is_dir():
            shutil.rmtree(self.path / "opponents")
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def write_plan(self, plan: RunPlan) -> None:
        """Write ``run.json``."""
        with replaced(self._plan) as file:
            file.write(msgspec.json.format(msgspec.json.encode(plan), indent=2))

    def read_plan(self) -> RunPlan:
        """Read ``run.json``.

        Raises:
            CheckpointError: If the file is missing or invalid.
        """
        if not self._plan.is_file():
            raise CheckpointError(f"{self.path} is not the folder of a run: it has no run.json")
        try:
            return convert(msgspec.json.decode(self._plan.read_bytes()), RunPlan)
        except (ConfigError, msgspec.DecodeError) as error:
            raise CheckpointError(f"{self._plan} cannot be read: {error}") from error

    def write_result(self, result: dict[str, object]) -> None:
        """Write ``result.json``."""
        with replaced(self._result) as file:
            file.write(msgspec.json.format(msgspec.json.encode(result), indent=2))


def _lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise RunInUseError(
                    f"{path} is in use: another process or thread is training in it"
                ) from error
            time.sleep(0.05)
        except OSError:  # the file system does not support locks: train without one
            return
        else:
            return
