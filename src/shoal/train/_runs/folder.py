"""What lies where in the folder of a run."""

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

__all__ = ["RunFolder", "RunPlan", "trained_env"]

_PATIENCE = 2.0
"""Seconds that the workers of a killed run have, which may hold its folder, to find that out."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a run was begun with, so that it can be gone on with."""

    name: str
    config: Config
    num_envs: int
    seed: int
    device: str
    eval_freq_steps: int
    eval_num_games: int
    eval_opponents: list[str]
    threads: int | None = None
    """Of the CPU, for an operation of torch: results depend on it in their last bits."""
    initial_agent: str | None = None
    adopted: dict[str, str] = {}
    """Agents that the config names, and where in the folder copies of them are."""
    env_is_given: bool = False
    """Whether the caller had made what is trained on, so that no name tells what it is."""

    @property
    def keeps_puck(self) -> bool:
        """Whether rackets keep the puck, as they do in the last phase."""
        return self.config.curriculum.phases[-1].environment.keep_mode


def trained_env(plan: RunPlan, given: EnvSource | None) -> EnvSource:
    """What a run is trained on: as its plan says, unless only the caller can."""
    if given is not None:
        return given
    if plan.env_is_given:
        raise ValueError(
            f"the run {plan.name} was given its environments ({plan.config.task.id}) in Python, as "
            "env=...: give them again"
        )
    return plan.config.task.id


class RunFolder:
    """The folder of a run.

    Args:
        path: Where it is.
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
        """A new folder; without a name it gets one of date, agent and number of environments."""
        base = Path(base)
        if name is not None:
            if not name.strip("./ ") or Path(name).is_absolute() or ".." in Path(name).parts:
                raise ValueError(f"run_name must name a folder in {base}, got {name!r}")
            folder = cls(base / name)
            if folder._plan.exists():
                raise FileExistsError(
                    f"there is a run {name} in {base}: give another name, or resume it by "
                    f"`shoal resume {folder.path}`"
                )
            folder.path.mkdir(parents=True, exist_ok=True)
            return folder
        vec = f"_vec{num_envs}" if num_envs > 1 else ""
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        for number in itertools.count(1):
            again = f"_{number}" if number > 1 else ""
            folder = cls(base / f"{now}_{config.agent.type}{vec}{again}")
            try:
                folder.path.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
        raise AssertionError  # there is always a next number

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no other process, and nobody else in this one, train in the folder meanwhile.

        Raises:
            RunInUseError: Somebody does.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    def tidy(self) -> None:
        """Remove what a killed run has half written."""
        for left in self.path.rglob(f"*{UNFINISHED}"):
            left.unlink()

    def forget_logs(self) -> None:
        """Begin the logs anew."""
        for logs in (self.path / "logs", self.path / "tensorboard"):
            if logs.is_dir():
                shutil.rmtree(logs)

    def adopt(self, paths: Iterable[str]) -> dict[str, str]:
        """Copy agents, so that a run is resumed with the same, whatever becomes of their files."""
        copies = {}
        for number, path in enumerate(dict.fromkeys(paths)):
            copies[path] = f"opponents/{number}.agent"
            write_file(self.path / copies[path], read_agent(path))
        return copies

    def adopted_file(self, path: str, plan: RunPlan) -> Path:
        """The copy of an agent that the run has, or the agent itself where it has none."""
        return self.path / plan.adopted[path] if path in plan.adopted else Path(path)

    def discard(self) -> None:
        """Leave nothing behind of a run that could not begin."""
        if (self.path / "opponents").is_dir():
            shutil.rmtree(self.path / "opponents")
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def write_plan(self, plan: RunPlan) -> None:
        """Keep what the run was begun with."""
        with replaced(self._plan) as file:
            file.write(msgspec.json.format(msgspec.json.encode(plan), indent=2))

    def read_plan(self) -> RunPlan:
        """What the run was begun with."""
        if not self._plan.is_file():
            raise CheckpointError(f"{self.path} is not the folder of a run: it has no run.json")
        try:
            return convert(msgspec.json.decode(self._plan.read_bytes()), RunPlan)
        except (ConfigError, msgspec.DecodeError) as error:
            raise CheckpointError(f"{self._plan} cannot be read: {error}") from error

    def write_result(self, result: dict[str, object]) -> None:
        """Keep what came of the run."""
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
                    f"{path} is in use: another process, or thread, trains there"
                ) from error
            time.sleep(0.05)
        except OSError:  # a file system without locks, which is no reason not to train
            return
        else:
            return
