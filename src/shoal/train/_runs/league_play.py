"""The league of a run: its members' agent files, and when new members are added."""

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
from shoal.train._tasks import FinishedEpisode, HockeyTask

__all__ = ["LeaguePlay"]


class LeaguePlay:
    """A league whose members are agent files in a folder.

    Args:
        settings: The settings of the league.
        folder: The folder of the members' files. Files of dropped members are kept, because the
            run may be resumed from a checkpoint at which they were members.
    """

    def __init__(self, settings: LeagueSettings, folder: Path) -> None:
        self.league = League(settings)
        self._folder = folder
        self._dropped: set[str] = set()

    def draw(self, rng: np.random.Generator) -> str:
        """Draw the name of an opponent."""
        name = self.league.draw(rng)
        return SELF if name == MAIN else name

    def load(self, name: str, device: str) -> Agent | None:
        """Load a current or dropped member as an agent; None if there is no such member."""
        # A dropped member may still be playing.
        file = self._folder / f"{name}.pt"
        is_member = name in self._dropped or name in {member.name for member in self.league.members}
        return load_agent(file, device) if is_member and file.is_file() else None

    def record(self, finished: Sequence[FinishedEpisode], first_exploiter: int) -> None:
        """Record finished games.

        Args:
            finished: The finished episodes.
            first_exploiter: The first slot of the exploiter.
        """
        names = {member.name for member in self.league.members}
        for episode in finished:
            if episode.winner is None or not episode.is_match:
                continue
            if episode.slot >= first_exploiter:
                self.league.record(MAIN, episode.winner, by=EXPLOITER)
            elif episode.opponent in names:
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
        """Add a snapshot or the exploiter to the league if it is due.

        Returns:
            The table of ratings (empty if the league has not changed), and whether the exploiter
            was reset, so that its episodes must be reset as well.
        """
        changed = exploiter_reset = False
        if self.league.is_snapshot_due(episodes):
            self._save(main, self.league.add_snapshot(step))
            changed = True
        if exploiter is not None and self.league.exploiter_is_done():
            self._save(exploiter, self.league.add_exploiter(step))
            exploiter.begin_as(main.description(), MAIN)
            changed = exploiter_reset = True
        self._dropped |= {member.name for member in self.league.collect_dropped()}
        self._dropped = {name for name in self._dropped if not opponents.forget(name, task.playing)}
        return (self.league.table(step) if changed else []), exploiter_reset

    def _save(self, agent: Agent, name: str) -> None:
        file = self.league.member(name).file
        assert file is not None  # frozen members have a file
        agent.save(self._folder / file)

    def state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"league": self.league.state(), "dropped": sorted(self._dropped)}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state returned by :meth:`state`."""
        self.league = League.from_state(self.league.settings, state["league"])
        self._dropped = set(state["dropped"])
