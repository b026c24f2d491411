"""A league of frozen players as opponents of the player in training."""

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
    """Members, ratings and matchmaking of a league.

    The player in training is ``"main"``. Its opponents are its current self, snapshots of it,
    exploiters and scripted players. An exploiter is a second learner, ``"exploiter"``, which plays
    only against the main player to find its weaknesses. When it is done, a frozen copy joins the
    league, and the exploiter starts again from the main player's current parameters.

    Args:
        settings: The settings of the league.

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
        self._episodes = self._last_snapshot = 0
        self.ratings.add(MAIN, "main")
        for member in self.members:
            self.ratings.add(member.name, member.role)
        if self.has_exploiter:
            self.ratings.add(EXPLOITER, "exploiter", like=MAIN)

    @property
    def members(self) -> tuple[Member, ...]:
        """Opponents other than the main player, in the order in which they joined."""
        return tuple(self._roster.members)

    @property
    def has_exploiter(self) -> bool:
        """Whether the league trains an exploiter."""
        return self.settings.exploiter_share > 0

    def member(self, name: str) -> Member:
        """Return the member with this name."""
        for member in self.members:
            if member.name == name:
                return member
        raise ValueError(f"{name!r} is not a member, the members are {_names(self.members)}")

    def is_snapshot_due(self, episodes: int) -> bool:
        """Whether a snapshot of the main player is due.

        Args:
            episodes: Number of episodes played by the main player. The next snapshot is dated at
                this number.
        """
        self._episodes = index(episodes)
        return episodes - self._last_snapshot >= self.settings.snapshot_every

    def add_snapshot(self, step: int) -> str:
        """Add a snapshot of the main player and return its name.

        If the league is full, members are dropped: see :meth:`collect_dropped`.
        """
        self._last_snapshot = self._episodes
        return self._admit("snapshot", step, like=MAIN)

    def exploiter_is_done(self) -> bool:
        """Whether the exploiter is ready to join the league: see :meth:`add_exploiter`."""
        return self.has_exploiter and self._exploiter.is_done

    def add_exploiter(self, step: int) -> str:
        """Add a frozen copy of the exploiter and return its name.

        The caller resets the exploiter to the main player's parameters; its rating is reset to that
        of the main player.
        """
        self._require_exploiter()
        name = self._admit("exploiter", step, like=EXPLOITER)
        # The copy inherits the results, so that matchmaking treats it as a strong opponent.
        self.results.rename(EXPLOITER, name)
        self.ratings.remove(EXPLOITER)
        self.ratings.add(EXPLOITER, "exploiter", like=MAIN)
        self._exploiter = ExploiterProgress(self.settings)
        return name

    def collect_dropped(self) -> list[Member]:
        """Return the members dropped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def draw(self, rng: np.random.Generator) -> str:
        """Draw the opponent of the main player's next episode: ``"main"`` or a member's name."""
        return self._matchmaker.draw(rng, self.win_rates(), MAIN)

    def win_rates(self) -> dict[str, float]:
        """Return the main player's win rate against each member, with draws as half a win."""
        return {member.name: self.results.win_rate(MAIN, member.name) for member in self.members}

    def record(self, opponent: str, outcome: int, by: str = MAIN) -> None:
        """Record a finished game.

        Games of the main player against itself or against a dropped member are ignored.

        Args:
            opponent: A member's name or ``"main"``; the exploiter's opponent is always ``"main"``.
            outcome: 1 if ``by`` won, -1 if the opponent won, 0 for a draw.
            by: ``"main"`` or ``"exploiter"``. A game between these two is recorded once, by the
                exploiter.
        """
        if by == EXPLOITER:
            self._require_exploiter()
            if opponent != MAIN:
                raise ValueError(f"the exploiter plays only against {MAIN!r}, got {opponent!r}")
        elif by != MAIN:
            raise ValueError(f"by must be {MAIN!r} or {EXPLOITER!r}, got {by!r}")
        elif opponent == MAIN or self._roster.was_member(opponent):
            return
        elif opponent not in self._roster:
            raise ValueError(
                f"{opponent!r} is not a member, the members are {_names(self.members)}"
            )
        self.ratings.record(by, opponent, outcome)
        self.results.record(by, opponent, outcome)
        if by == EXPLOITER:
            self._exploiter.record(outcome)

    def table(self, step: int) -> list[RatingRecord]:
        """Return the ratings of all players, strongest first, dated at a step of the run."""
        return self.ratings.table(step)

    def state(self) -> dict[str, Any]:
        """Return the state without the settings as plain data, for :meth:`from_state`."""
        plain: dict[str, Any] = msgspec.to_builtins(
            _LeagueState(
                episodes=self._episodes,
                last_snapshot=self._last_snapshot,
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
        """Create a league from the result of :meth:`state`.

        Args:
            settings: The settings of the league. They may differ from the original ones, except
                for ``scripted``, which is ignored.
            state: The state.
        """
        league = cls(settings)
        saved = msgspec.convert(state, _LeagueState)
        league._episodes, league._last_snapshot = saved.episodes, saved.last_snapshot
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
        for dropped in self._roster.drop_surplus(self.ratings.lower_bound):
            self.ratings.remove(dropped.name)
            self.results.remove(dropped.name)
            self._dropped.append(dropped)
        return member.name

    def _require_exploiter(self) -> None:
        if not self.has_exploiter:
            raise ValueError("the league has no exploiter: exploiter_share is 0")


class _LeagueState(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    episodes: int
    last_snapshot: int
    dropped: list[Member]
    roster: dict[str, Any]
    exploiter: dict[str, Any]
    ratings: dict[str, Any]
    results: dict[str, Any]


def _checked(settings: LeagueSettings) -> LeagueSettings:
    # msgspec checks bounds only when it converts data, not in the constructor.
    return msgspec.convert(msgspec.to_builtins(settings), LeagueSettings)


def _names(members: tuple[Member, ...]) -> str:
    return ", ".join(repr(member.name) for member in members) or "none"
