"""What came of the games between each two players."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["PairResults"]

Counts = tuple[float, float, float]
"""Wins, draws and losses of the first of two players; old games are fractions of one."""


class PairResults:
    """Wins, draws and losses of each pair of players.

    Args:
        half_life: After so many games of a pair, an older game of theirs counts half. With None,
            all games count alike.
        prior: So many drawn games are imagined before the first one of a pair, for a few games
            tell little.

    Example:
        >>> results = PairResults(prior=2)
        >>> results.record("main", "weak", 1, count=6)
        >>> results.win_rate("main", "weak"), results.win_rate("weak", "main")
        (0.875, 0.125)
        >>> results.win_rate("main", "strong")
        0.5
    """

    def __init__(self, half_life: float | None = None, prior: float = 2.0) -> None:
        if half_life is not None and not 0 < half_life < math.inf:
            raise ValueError(f"half_life must be a number above 0, or None, got {half_life}")
        if not 0 <= prior < math.inf:
            raise ValueError(f"prior must be a number of at least 0, got {prior}")
        self.half_life = half_life
        self.prior = float(prior)
        self._pairs: dict[tuple[str, str], Counts] = {}  # names in the order of the alphabet

    def record(self, first: str, second: str, outcome: int, count: int = 1) -> None:
        """Count games that ended alike.

        Args:
            first: A player.
            second: Another one.
            outcome: 1 if the first has won, -1 if the second has, 0 for a draw.
            count: How many games.
        """
        if first == second:
            raise ValueError(f"a game of {first!r} against itself has no result")
        if outcome not in (1, 0, -1):
            raise ValueError(f"an outcome must be 1, 0 or -1, got {outcome!r}")
        if count < 0:
            raise ValueError(f"count must be at least 0, got {count}")
        kept, added = self._weights(count)
        before = self.counts(first, second)
        after = [kept * games for games in before]
        after[1 - outcome] += added
        self._put(first, second, (after[0], after[1], after[2]))

    def record_many(self, games: Iterable[tuple[str, str, int]]) -> None:
        """Count games: the first player, the second, and the outcome of each, the oldest first."""
        for first, second, outcome in games:
            self.record(first, second, outcome)

    def counts(self, first: str, second: str) -> Counts:
        """Wins, draws and losses of the first player."""
        if first <= second:
            return self._pairs.get((first, second), (0.0, 0.0, 0.0))
        losses, draws, wins = self._pairs.get((second, first), (0.0, 0.0, 0.0))
        return wins, draws, losses

    def win_rate(self, first: str, second: str) -> float:
        """Which part of the games the first player wins; a draw is half a win."""
        wins, draws, losses = self.counts(first, second)
        games = wins + draws + losses + self.prior
        return (wins + (draws + self.prior) / 2) / games if games else 0.5

    def rename(self, old: str, new: str) -> None:
        """Let a player have all results of another, which has none from then on."""
        if self._pairs_of(new):
            raise ValueError(f"{new!r} has results of its own")
        for first, second in self._pairs_of(old):
            other = second if first == old else first
            counts = self.counts(old, other)
            del self._pairs[first, second]
            self._put(new, other, counts)

    def remove(self, name: str) -> None:
        """Forget the games of a player."""
        for pair in self._pairs_of(name):
            del self._pairs[pair]

    def state(self) -> dict[str, Any]:
        """All of it as plain data, from which :meth:`from_state` makes its equal."""
        pairs = [_PairState(*names, *counts) for names, counts in self._pairs.items()]
        plain: dict[str, Any] = msgspec.to_builtins(
            _ResultsState(self.half_life, self.prior, pairs)
        )
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PairResults:
        """Results that go on where those of this state were."""
        saved = msgspec.convert(state, _ResultsState)
        results = cls(saved.half_life, saved.prior)
        for pair in saved.pairs:
            results._put(pair.first, pair.second, (pair.wins, pair.draws, pair.losses))
        return results

    def _weights(self, count: int) -> tuple[float, float]:
        """What remains of older games after some, and what these count together."""
        if self.half_life is None:
            return 1.0, float(count)
        fading = math.log(2) / self.half_life
        return math.exp(-fading * count), math.expm1(-fading * count) / math.expm1(-fading)

    def _put(self, first: str, second: str, counts: Counts) -> None:
        wins, draws, losses = counts
        if first <= second:
            self._pairs[first, second] = wins, draws, losses
        else:
            self._pairs[second, first] = losses, draws, wins

    def _pairs_of(self, name: str) -> list[tuple[str, str]]:
        return [pair for pair in self._pairs if name in pair]


class _PairState(msgspec.Struct, forbid_unknown_fields=True):
    first: str
    second: str
    wins: float
    draws: float
    losses: float


class _ResultsState(msgspec.Struct, forbid_unknown_fields=True):
    half_life: float | None
    prior: float
    pairs: list[_PairState]
