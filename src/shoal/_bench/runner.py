"""Measure contenders in alternating rounds, so that all see the same state of the machine."""

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
"""Turns of a contender in a cell besides its rounds: start, query versions, open, close."""


@dataclass(frozen=True)
class Settings:
    """How a cell is measured."""

    rounds: int = 15
    seconds: float = 0.1
    """Seconds that a contender is measured per round."""
    timeout: float = 120.0
    """Seconds to wait for a contender before it is skipped in this cell."""


class Runner:
    """Measures cells. As a context manager, it kills all processes on exit.

    Every contender has a process that lives as long as the runner. If the contender fails, its
    process is killed, the cell records the reason, and the next cell starts a new process.

    Args:
        contenders: The contenders.
        workloads: The workloads by name.
        settings: How cells are measured.
        interpreter_for: Returns the interpreter for a contender; may raise a ``ContenderError``.
        watch: Called with a contender and the cell before each of its turns.
        plan_key: Given a contender and its vector's note, returns a key of how it steps, or None if
            it is unique. Of the contenders with the same key, only the first is measured.
    """

    def __init__(
        self,
        contenders: Iterable[Contender],
        workloads: Mapping[str, Workload],
        settings: Settings,
        interpreter_for: Callable[[Contender], Interpreter] | None = None,
        watch: Callable[[Contender, Cell], object] | None = None,
        plan_key: Callable[[Contender, str], str | None] | None = None,
    ) -> None:
        self.settings = settings
        self.versions: dict[str, dict[str, str]] = {}
        """The package versions of each contender that has run, by the contender's name."""
        self._contenders = list(contenders)
        self._workloads = workloads
        self._interpreter_for = interpreter_for
        self._watch = watch
        self._plan_key = plan_key
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
        """Measure cells, each a workload and a number of environments, and print the progress."""
        cells = []
        for number, (workload, num_envs) in enumerate(places, 1):
            print(f"[{number}/{len(places)}] {workload} x {num_envs}", file=sys.stderr, flush=True)
            cells.append(self.measure(workload, num_envs))
        return cells

    def measure(self, workload: str, num_envs: int, names: Collection[str] | None = None) -> Cell:
        """Measure every contender that supports this workload, round by round.

        With ``names``, only those contenders are measured.
        """
        running = [
            each
            for each in self._contenders
            if each.supports(workload) and (names is None or each.name in names)
        ]
        cell = Cell(workload, num_envs, [each.name for each in running])
        # All processes start concurrently; no contender opens a vector before all have started.
        for turn in (self._start, self._query_versions, self._open):
            running = self._take_turns(running, turn, cell)
        running = self._without_duplicates(running, cell)
        for _ in range(self.settings.rounds):
            self._random.shuffle(running)
            running = self._take_turns(running, self._take_round, cell)
        self._take_turns(running, self._close, cell)
        return cell

    def _without_duplicates(self, contenders: list[Contender], cell: Cell) -> list[Contender]:
        """Close contenders that step in the same way as an earlier one, and return the others."""
        if self._plan_key is None:
            return contenders
        first: dict[str, str] = {}
        unique, duplicates = [], []
        for contender in contenders:
            key = self._plan_key(contender, cell.notes.get(contender.name, ""))
            other = contender.name if key is None else first.setdefault(key, contender.name)
            if other == contender.name:
                unique.append(contender)
            else:
                cell.same_as[contender.name] = other
                del cell.rates[contender.name]
                duplicates.append(contender)
        self._take_turns(duplicates, self._close, cell)
        return unique

    def _take_turns(
        self,
        contenders: list[Contender],
        turn: Callable[[Contender, Cell], None],
        cell: Cell,
    ) -> list[Contender]:
        """Call ``turn`` for every contender, and return those that did not fail."""
        remaining = []
        for contender in contenders:
            if self._watch is not None:
                self._watch(contender, cell)
            try:
                turn(contender, cell)
                remaining.append(contender)
            except ContenderError as error:
                cell.failures[contender.name] = str(error)
                cell.rates.pop(contender.name, None)
                self._processes.pop(contender.name, None)
        return remaining

    def _start(self, contender: Contender, cell: Cell) -> None:  # noqa: ARG002
        if contender.name not in self._processes:
            if self._interpreter_for is None:
                interpreter = current_interpreter()
            else:
                interpreter = self._interpreter_for(contender)
            session = partial(Session, contender)
            process = ServiceProcess(session, interpreter, self.settings.timeout)
            self._processes[contender.name] = process

    def _query_versions(self, contender: Contender, cell: Cell) -> None:  # noqa: ARG002
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
