"""Results and standings of a tournament."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shoal.train._league.ratings import Ratings
from shoal.train._league.results import PairResults

__all__ = ["PairingResult", "StandingRow", "Standings"]


class PairingResult(NamedTuple):
    """Result of one player on the first side against another on the second side."""

    first: str
    second: str
    wins: int
    """Wins of the first player; draws and losses are also counted from its side."""
    draws: int
    losses: int


class StandingRow(NamedTuple):
    """Final result of one player in a tournament."""

    place: int
    player: str
    games: int
    wins: int
    draws: int
    losses: int
    points: float
    """One point per win, half a point per draw."""
    rating: float
    """Conservative estimate of the strength: mean minus three standard deviations."""
    mean: float
    deviation: float


class Standings:
    """The results of a tournament.

    Args:
        names: Names of the players.
        results: Results of all pairings.

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
        self._ratings = Ratings(drift=0)  # players do not learn in a tournament
        for name in self.names:
            self._ratings.add(name, "")
        for first, second, *counts in self.results:
            for outcome, count in zip((1, 0, -1), counts, strict=True):
                self._pairs.record(first, second, outcome, count)
        self._ratings.record_many(_interleaved(self.results))

    def rows(self) -> list[StandingRow]:
        """Return the players ordered by points, then by rating."""
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
        """Return wins, draws and losses of a player against all others."""
        pairs = [self.pair(name, other) for other in self.names if other != name]
        wins, draws, losses = zip((0, 0, 0), *pairs, strict=True)
        return sum(wins), sum(draws), sum(losses)

    def points(self, name: str) -> float:
        """Return the points of a player: one per win, half a point per draw."""
        wins, draws, _ = self.totals(name)
        return wins + draws / 2

    def pair(self, first: str, second: str) -> tuple[int, int, int]:
        """Return wins, draws and losses of a player against another, summed over both sides."""
        wins, draws, losses = self._pairs.counts(first, second)
        return int(wins), int(draws), int(losses)

    def expected(self, first: str, second: str) -> float:
        """Return the expected score of the first player against the second."""
        return self._ratings.expected(first, second)

    def _strength(self, name: str) -> float:
        return self._ratings.lower_bound(name)


def _interleaved(results: Sequence[PairingResult]) -> list[tuple[str, str, int]]:
    """Return all games, with those of each pairing and outcome spread evenly over the list.

    Ratings depend on the order of games. An even spread favours no player.
    """
    games = [
        ((game + 0.5) / count, first, second, outcome)
        for first, second, *counts in results
        for outcome, count in zip((1, 0, -1), counts, strict=True)
        for game in range(count)
    ]
    games.sort(key=lambda game: game[0])
    return [(first, second, outcome) for _, first, second, outcome in games]
