"""Measures contenders against each other, in turn, so that all see the same machine."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from types import TracebackType
from typing import Self

from shoal._bench.contenders.base import Contender
from shoal._bench.process import ContenderError, Interpreter, ServiceProcess, current_interpreter
from shoal._bench.results import Cell
from shoal._bench.session import Session
from shoal._bench.workload import Workload

__all__ = ["OTHER_TURNS", "Runner", "Settings"]

OTHER_TURNS = 4
"""What a contender does in a cell besides its rounds: start, greet, open, close."""


@dataclass(frozen=True)
class Settings:
    """How a cell is measured."""

    rounds: int = 15
    seconds: float = 0.1
    """How long a contender is measured in one round."""
    timeout: float = 120.0
    """Seconds after which a contender that does not answer is given up for this cell."""


class Runner:
    """Runs cells. A context manager: at its end no process is left.

    Every contender has a process that lives as long as the runner, unless it fails: then it is
    killed, the cell reports why, and the next cell starts it anew.

    Args:
        contenders: Who is measured.
        workloads: What may be stepped, by name.
        settings: How they are measured.
        home: Says where a contender's process runs; may raise a ``ContenderError``.
        watch: Called with a contender and the cell before it does anything.
        way: Given a contender and its vector's note, says how it steps, or none where it does as no
            other. Of those that step alike only the first is measured.
    """

    def __init__(
        self,
        contenders: Iterable[Contender],
        workloads: Mapping[str, Workload],
        settings: Settings,
        home: Callable[[Contender], Interpreter] | None = None,
        watch: Callable[[Contender, Cell], object] | None = None,
        way: Callable[[Contender, str], str | None] | None = None,
    ) -> None:
        self.settings = settings
        self.versions: dict[str, dict[str, str]] = {}
        """The versions of each contender that has run, by its name."""
        self._contenders = list(contenders)
        self._workloads = workloads
        self._home = home
        self._watch = watch
        self._way = way
        self._processes: dict[str, ServiceProcess] = {}
        self._random = Random(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.kill()

    def measure_all(self, places: Sequence[tuple[str, int]]) -> list[Cell]:
        """Measure cells, each a workload and a number of environments, and say which is next."""
        cells = []
        for number, (workload, num_envs) in enumerate(places, 1):
            print(f"[{number}/{len(places)}] {workload} x {num_envs}", file=sys.stderr, flush=True)
            cells.append(self.measure(workload, num_envs))
        return cells

    def measure(self, workload: str, num_envs: int, names: Collection[str] | None = None) -> Cell:
        """Measure every contender that supports this workload, round by round.

        With ``names``, only those contenders.
        """
        running = [
            each
            for each in self._contenders
            if each.supports(workload) and (names is None or each.name in names)
        ]
        cell = Cell(workload, num_envs, [each.name for each in running])
        # They begin side by side, and nobody makes anything before all of them are there.
        for act in (self._start, self._greet, self._open):
            running = self._one_by_one(running, act, cell)
        running = self._different(running, cell)
        for _ in range(self.settings.rounds):
            self._random.shuffle(running)
            running = self._one_by_one(running, self._take_round, cell)
        self._one_by_one(running, self._close, cell)
        return cell

    def _different(self, contenders: list[Contender], cell: Cell) -> list[Contender]:
        """Close what another one does as well, and return the others."""
        if self._way is None:
            return contenders
        first: dict[str, str] = {}
        different, alike = [], []
        for contender in contenders:
            way = self._way(contender, cell.notes.get(contender.name, ""))
            other = contender.name if way is None else first.setdefault(way, contender.name)
            if other == contender.name:
                different.append(contender)
            else:
                cell.same_as[contender.name] = other
                del cell.rates[contender.name]
                alike.append(contender)
        self._one_by_one(alike, self._close, cell)
        return different

    def _one_by_one(
        self,
        contenders: list[Contender],
        act: Callable[[Contender, Cell], None],
        cell: Cell,
    ) -> list[Contender]:
        """Have every contender act, and return those that did not fail."""
        able = []
        for contender in contenders:
            if self._watch is not None:
                self._watch(contender, cell)
            try:
                act(contender, cell)
                able.append(contender)
            except ContenderError as error:
                cell.failures[contender.name] = str(error)
                cell.rates.pop(contender.name, None)
                self._processes.pop(contender.name, None)
        return able

    def _start(self, contender: Contender, cell: Cell) -> None:  # noqa: ARG002
        if contender.name not in self._processes:
            home = current_interpreter() if self._home is None else self._home(contender)
            process = ServiceProcess(partial(Session, contender), home, self.settings.timeout)
            self._processes[contender.name] = process

    def _greet(self, contender: Contender, cell: Cell) -> None:  # noqa: ARG002
        if contender.name not in self.versions:
            process = self._processes[contender.name]
            self.versions[contender.name] = process.request("versions")

    def _open(self, contender: Contender, cell: Cell) -> None:
        workload = pickle.dumps(self._workloads[cell.workload]).hex()
        note = self._processes[contender.name].request(
            "open", workload=workload, num_envs=cell.num_envs
        )
        if note:
            cell.notes[contender.name] = note
        cell.rates[contender.name] = []

    def _take_round(self, contender: Contender, cell: Cell) -> None:
        process = self._processes[contender.name]
        steps, elapsed = process.request("step", seconds=self.settings.seconds)
        cell.rates[contender.name].append(steps / elapsed)

    def _close(self, contender: Contender, cell: Cell) -> None:  # noqa: ARG002
        self._processes[contender.name].request("close")
