"""A league: keeps players of the past as opponents of the one that is trained."""

from __future__ import annotations

from operator import index
from typing import Any

import msgspec
import numpy as np

from shoal.train._league.exploiter import ExploiterProgress
from shoal.train._league.matchmaking import Matchmaker
from shoal.train._league.members import EXPLOITER, MAIN, Frozen, Member
from shoal.train._league.ratings import Ratings
from shoal.train._league.results import PairResults
from shoal.train._league.roster import Roster
from shoal.train._league.settings import LeagueSettings
from shoal.train._records import RatingRecord

__all__ = ["League"]


class League:
    """Knows who can be played against, how strong each is, and whom to play next.

    The player that is trained is ``"main"``. Its opponents are itself as it is, snapshots of it,
    exploiters and scripted players. An exploiter is a second learner, ``"exploiter"``, which plays
    against the main alone, to find its weaknesses; when it is done it is frozen and joins the
    league, and begins again as what the main is by then.

    Args:
        settings: How it grows, and how opponents are drawn.

    Example:
        >>> import numpy as np
        >>> league = League(LeagueSettings(snapshot_every=100, scripted=("weak",)))
        >>> if league.is_snapshot_due(episodes=100):
        ...     name = league.add_snapshot(step=25_000)
        >>> name, league.member(name).file
        ('snapshot-1', 'snapshot-1.pt')
        >>> league.draw(np.random.default_rng(0)) in {"main", "weak", "snapshot-1"}
        True
        >>> league.record("snapshot-1", 1)
    """

    def __init__(self, settings: LeagueSettings) -> None:
        self.settings = settings = _checked(settings)
        self.ratings = Ratings()
        self.results = PairResults(settings.half_life)
        self._roster = Roster(settings.size, settings.scripted)
        self._matchmaker = Matchmaker(settings.matchmaking, settings.latest_share)
        self._exploiter = ExploiterProgress(settings)
        self._dropped: list[Member] = []
        self._episodes = self._frozen_at = 0
        self.ratings.add(MAIN, "main")
        for member in self.members:
            self.ratings.add(member.name, member.role)
        if self.has_exploiter:
            self.ratings.add(EXPLOITER, "exploiter", like=MAIN)

    @property
    def members(self) -> tuple[Member, ...]:
        """Who can be an opponent beside the main itself, in the order in which they came."""
        return tuple(self._roster.members)

    @property
    def has_exploiter(self) -> bool:
        """Whether there is a second learner."""
        return self.settings.exploiter_share > 0

    def member(self, name: str) -> Member:
        """The member of this name."""
        for member in self.members:
            if member.name == name:
                return member
        raise ValueError(f"{name!r} is not a member, those are {_names(self.members)}")

    def is_snapshot_due(self, episodes: int) -> bool:
        """Whether the main has played long enough since it was last frozen.

        Args:
            episodes: How many it has played so far. The next snapshot counts as made then.
        """
        self._episodes = index(episodes)
        return episodes - self._frozen_at >= self.settings.snapshot_every

    def add_snapshot(self, step: int) -> str:
        """Take in the main as it is at this step, and return the name that it has as a member.

        If the league was full, others have gone: see :meth:`collect_dropped`.
        """
        self._frozen_at = self._episodes
        return self._admit("snapshot", step, like=MAIN)

    def exploiter_is_done(self) -> bool:
        """Whether the exploiter is to join the league: see :meth:`add_exploiter`."""
        return self.has_exploiter and self._exploiter.is_done

    def add_exploiter(self, step: int) -> str:
        """Take in the exploiter as it is at this step, and return the name it has as a member.

        The exploiter is to begin again with what the main is now, and is rated as the main is.
        """
        self._needs_exploiter()
        name = self._admit("exploiter", step, like=EXPLOITER)
        # What it has shown is why it is here: the main is to meet it as one it loses to.
        self.results.rename(EXPLOITER, name)
        self.ratings.remove(EXPLOITER)
        self.ratings.add(EXPLOITER, "exploiter", like=MAIN)
        self._exploiter = ExploiterProgress(self.settings)
        return name

    def collect_dropped(self) -> list[Member]:
        """The members that have gone since this was last asked. Nobody needs their files."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def draw(self, rng: np.random.Generator) -> str:
        """The opponent of the main's next episode: ``"main"`` or a member."""
        return self._matchmaker.draw(rng, self.win_rates(), MAIN)

    def win_rates(self) -> dict[str, float]:
        """Which part of its games the main wins against each member; a draw is half a win."""
        return {member.name: self.results.win_rate(MAIN, member.name) for member in self.members}

    def record(self, opponent: str, outcome: int, by: str = MAIN) -> None:
        """Take notice of a game that has ended.

        A game of the main against itself tells nothing, nor does one that was begun against a
        member that has gone meanwhile: they are left out.

        Args:
            opponent: A member or ``"main"``; of the exploiter always ``"main"``.
            outcome: 1 if ``by`` has won, -1 if the opponent has, 0 for a draw.
            by: ``"main"`` or ``"exploiter"``. A game of these two is told once, by the exploiter.
        """
        if by == EXPLOITER:
            self._needs_exploiter()
            if opponent != MAIN:
                raise ValueError(f"the exploiter plays against {MAIN!r} alone, got {opponent!r}")
        elif by != MAIN:
            raise ValueError(f"by must be {MAIN!r} or {EXPLOITER!r}, got {by!r}")
        elif opponent == MAIN or self._roster.was_member(opponent):
            return
        elif opponent not in self._roster:
            raise ValueError(f"{opponent!r} is not a member, those are {_names(self.members)}")
        self.ratings.record(by, opponent, outcome)
        self.results.record(by, opponent, outcome)
        if by == EXPLOITER:
            self._exploiter.record(outcome)

    def table(self, step: int) -> list[RatingRecord]:
        """All players as they are at a step of the run, the strongest first."""
        return self.ratings.table(step)

    def state(self) -> dict[str, Any]:
        """All of it but the settings as plain data, for :meth:`from_state`."""
        plain: dict[str, Any] = msgspec.to_builtins(
            _LeagueState(
                episodes=self._episodes,
                frozen_at=self._frozen_at,
                dropped=self._dropped,
                roster=self._roster.state(),
                exploiter=self._exploiter.state(),
                ratings=self.ratings.state(),
                results=self.results.state(),
            )
        )
        return plain

    @classmethod
    def from_state(cls, settings: LeagueSettings, state: dict[str, Any]) -> League:
        """A league that goes on where that of this state was.

        Args:
            settings: What the league had, or others; ``scripted`` is then taken no notice of.
            state: What :meth:`state` has returned.
        """
        league = cls(settings)
        saved = msgspec.convert(state, _LeagueState)
        league._episodes, league._frozen_at = saved.episodes, saved.frozen_at
        league._dropped = saved.dropped
        league._roster = Roster.from_state(league.settings.size, saved.roster)
        league._exploiter = ExploiterProgress.from_state(league.settings, saved.exploiter)
        league.ratings = Ratings.from_state(saved.ratings)
        league.results = PairResults.from_state(saved.results)
        league.results.half_life = league.settings.half_life
        if league.has_exploiter and EXPLOITER not in league.ratings:
            league.ratings.add(EXPLOITER, "exploiter", like=MAIN)
        return league

    def _admit(self, role: Frozen, step: int, like: str) -> str:
        member = self._roster.add(role, step)
        self.ratings.add(member.name, role, like=like)
        for gone in self._roster.drop_surplus(self.ratings.lower_bound):
            self.ratings.remove(gone.name)
            self.results.remove(gone.name)
            self._dropped.append(gone)
        return member.name

    def _needs_exploiter(self) -> None:
        if not self.has_exploiter:
            raise ValueError("the league has no exploiter, since exploiter_share is 0")


class _LeagueState(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    episodes: int
    frozen_at: int
    dropped: list[Member]
    roster: dict[str, Any]
    exploiter: dict[str, Any]
    ratings: dict[str, Any]
    results: dict[str, Any]


def _checked(settings: LeagueSettings) -> LeagueSettings:
    # msgspec checks bounds when it reads settings, not when they are made in Python.
    return msgspec.convert(msgspec.to_builtins(settings), LeagueSettings)


def _names(members: tuple[Member, ...]) -> str:
    return ", ".join(repr(member.name) for member in members) or "nobody"
