"""What came of a tournament: who has played whom how, and in which order that puts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shoal.train._league.ratings import Ratings
from shoal.train._league.results import PairResults

__all__ = ["PairingResult", "StandingRow", "Standings"]


class PairingResult(NamedTuple):
    """Games of one player on the first side against another on the second."""

    first: str
    second: str
    wins: int
    """Of the first, as are draws and losses."""
    draws: int
    losses: int


class StandingRow(NamedTuple):
    """How one player has done in a tournament."""

    place: int
    player: str
    games: int
    wins: int
    draws: int
    losses: int
    points: float
    """One for a win, a half for a draw."""
    rating: float
    """A lower bound of its strength: the mean less three deviations."""
    mean: float
    deviation: float


class Standings:
    """The results of a tournament.

    Args:
        names: The players.
        results: Of their games.

    Example:
        >>> standings = Standings(["ann", "bob"], [PairingResult("ann", "bob", 1, 2, 3)])
        >>> [(row.player, row.points) for row in standings.rows()]
        [('bob', 4.0), ('ann', 2.0)]
        >>> standings.pair("bob", "ann")
        (3, 2, 1)
    """

    def __init__(self, names: Sequence[str], results: Sequence[PairingResult]) -> None:
        self.names = tuple(names)
        self.results = tuple(results)
        self._pairs = PairResults(prior=0)
        self._ratings = Ratings(drift=0)  # nobody learns in a tournament
        for name in self.names:
            self._ratings.add(name, "")
        for first, second, *counts in self.results:
            for outcome, count in zip((1, 0, -1), counts, strict=True):
                self._pairs.record(first, second, outcome, count)
        self._ratings.record_many(_interleaved(self.results))

    def rows(self) -> list[StandingRow]:
        """The players by points; of equals, the one that is held to be stronger comes first."""
        order = sorted(self.names, key=lambda name: (-self.points(name), -self._strength(name)))
        return [
            StandingRow(
                place,
                name,
                sum(self.totals(name)),
                *self.totals(name),
                self.points(name),
                self._strength(name),
                *self._ratings.rating(name),
            )
            for place, name in enumerate(order, 1)
        ]

    def totals(self, name: str) -> tuple[int, int, int]:
        """Wins, draws and losses of a player against all others."""
        pairs = [self.pair(name, other) for other in self.names if other != name]
        wins, draws, losses = zip((0, 0, 0), *pairs, strict=True)
        return sum(wins), sum(draws), sum(losses)

    def points(self, name: str) -> float:
        """One for each win of a player, a half for each draw."""
        wins, draws, _ = self.totals(name)
        return wins + draws / 2

    def pair(self, first: str, second: str) -> tuple[int, int, int]:
        """Wins, draws and losses of a player against another, on both sides together."""
        wins, draws, losses = self._pairs.counts(first, second)
        return int(wins), int(draws), int(losses)

    def expected(self, first: str, second: str) -> float:
        """How much of a game the first is expected to win, by the ratings."""
        return self._ratings.expected(first, second)

    def _strength(self, name: str) -> float:
        return self._ratings.lower_bound(name)


def _interleaved(results: Sequence[PairingResult]) -> list[tuple[str, str, int]]:
    """All games, those of every pairing and outcome spread evenly over the tournament.

    A rating depends on the order of the games, and nobody is to be favoured by it.
    """
    games = [
        ((game + 0.5) / count, first, second, outcome)
        for first, second, *counts in results
        for outcome, count in zip((1, 0, -1), counts, strict=True)
        for game in range(count)
    ]
    games.sort(key=lambda game: game[0])
    return [(first, second, outcome) for _, first, second, outcome in games]
