"""The league of a run: who of its members exists as an agent, and when the next one is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.train._agents import Agent, load_agent
from shoal.train._league import League, LeagueSettings
from shoal.train._league.members import EXPLOITER, MAIN
from shoal.train._opponents import SELF, Opponents
from shoal.train._records import RatingRecord
from shoal.train._tasks import Ended, HockeyTask

__all__ = ["LeaguePlay"]


class LeaguePlay:
    """A league whose members are files in a folder.

    Args:
        settings: How it grows.
        folder: Where its members' files are. They stay there when members are dropped: a run may
            be resumed from a time when they were not.
    """

    def __init__(self, settings: LeagueSettings, folder: Path) -> None:
        self.league = League(settings)
        self._folder = folder
        self._gone: set[str] = set()

    def draw(self, rng: np.random.Generator) -> str:
        """The name of an opponent."""
        name = self.league.draw(rng)
        return SELF if name == MAIN else name

    def load(self, name: str, device: str) -> Agent | None:
        """A member, or one of the past, as an agent; None if there is nobody of this name."""
        # Who was dropped may still be playing.
        file = self._folder / f"{name}.pt"
        is_known = name in self._gone or name in {member.name for member in self.league.members}
        return load_agent(file, device) if is_known and file.is_file() else None

    def record(self, ended: Sequence[Ended], first_exploiter: int) -> None:
        """Take games into account that have ended.

        Args:
            ended: All of them.
            first_exploiter: The slots from this one on are an exploiter's.
        """
        known = {member.name for member in self.league.members}
        for episode in ended:
            if episode.winner is None or not episode.is_match:
                continue
            if episode.slot >= first_exploiter:
                self.league.record(MAIN, episode.winner, by=EXPLOITER)
            elif episode.opponent in known:
                self.league.record(episode.opponent, episode.winner)

    def grow(
        self,
        step: int,
        episodes: int,
        main: Agent,
        exploiter: Agent | None,
        opponents: Opponents,
        task: HockeyTask,
    ) -> tuple[list[RatingRecord], bool]:
        """Take in who is due.

        Returns:
            The table, empty if nothing has changed, and whether the exploiter has begun anew, so
            that its episodes must, too.
        """
        changed = renewed = False
        if self.league.is_snapshot_due(episodes):
            self._keep(main, self.league.add_snapshot(step))
            changed = True
        if exploiter is not None and self.league.exploiter_is_done():
            self._keep(exploiter, self.league.add_exploiter(step))
            exploiter.begin_as(main.description(), MAIN)
            changed = renewed = True
        self._gone |= {member.name for member in self.league.collect_dropped()}
        self._gone = {name for name in self._gone if not opponents.forget(name, task.playing)}
        return (self.league.table(step) if changed else []), renewed

    def _keep(self, agent: Agent, name: str) -> None:
        file = self.league.member(name).file
        assert file is not None  # who was just frozen has one
        agent.save(self._folder / file)

    def state(self) -> dict[str, Any]:
        """All that the rest of a run depends on."""
        return {"league": self.league.state(), "gone": sorted(self._gone)}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        self.league = League.from_state(self.league.settings, state["league"])
        self._gone = set(state["gone"])
