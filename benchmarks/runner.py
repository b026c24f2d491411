"""Measures the workloads, each contender with the interpreter that has its packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks import ROOT
from benchmarks.peers import InPeer, PeerError, interpreter
from benchmarks.workloads import BURN_RATE_VARIABLE, WORKLOADS, burn_rate
from shoal._bench import runner
from shoal._bench.contenders.base import Contender
from shoal._bench.process import Interpreter, current_interpreter
from shoal._bench.runner import Settings

__all__ = ["Runner"]


class Runner(runner.Runner):
    """A runner for ``WORKLOADS``."""

    def __init__(self, contenders: Iterable[Contender], settings: Settings) -> None:
        super().__init__(contenders, WORKLOADS, settings, self._place)
        self._interpreters: dict[str, Path | PeerError] = {}

    def _place(self, contender: Contender) -> Interpreter:
        environment = {BURN_RATE_VARIABLE: repr(burn_rate())}
        if not isinstance(contender, InPeer):
            return replace(current_interpreter(), environment=environment)
        python = self._interpreter(contender.peer)
        return Interpreter(python, (str(ROOT),), has_shoal=False, environment=environment)

    def _interpreter(self, peer: str) -> Path:
        """Return the interpreter of a peer environment; a failed installation is not repeated."""
        if peer not in self._interpreters:
            try:
                self._interpreters[peer] = interpreter(peer)
            except PeerError as error:
                self._interpreters[peer] = error
        found = self._interpreters[peer]
        if isinstance(found, PeerError):
            raise found
        return found
