"""Results of games between pairs of players."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["PairResults"]

Counts = tuple[float, float, float]
"""Wins, draws and losses of the first player. Discounted games count as fractions."""


class PairResults:
    """Wins, draws and losses of each pair of players.

    Args:
        half_life: Number of games of a pair after which an older game counts half. None disables
            discounting.
        prior: Number of virtual draws added to each pair, which regularizes win rates over few
            games.

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
            raise ValueError(f"half_life must be a positive number or None, got {half_life}")
        if not 0 <= prior < math.inf:
            raise ValueError(f"prior must be a non-negative number, got {prior}")
        self.half_life = half_life
        self.prior = float(prior)
        self._pairs: dict[tuple[str, str], Counts] = {}  # the names in a key are sorted

    def record(self, first: str, second: str, outcome: int, count: int = 1) -> None:
        """Record games with the same outcome.

        Args:
            first: The first player.
            second: The second player.
            outcome: 1 if the first player won, -1 if the second won, 0 for a draw.
            count: Number of games.
        """
        if first == second:
            raise ValueError(f"players must be different, got {first!r} twice")
        if outcome not in (1, 0, -1):
            raise ValueError(f"outcome must be 1, 0 or -1, got {outcome!r}")
        if count < 0:
            raise ValueError(f"count must be at least 0, got {count}")
        discount, added = self._weights(count)
        counts = [discount * games for games in self.counts(first, second)]
        counts[1 - outcome] += added
        self._set(first, second, (counts[0], counts[1], counts[2]))

    def record_many(self, games: Iterable[tuple[str, str, int]]) -> None:
        """Record games in chronological order: first player, second player and outcome."""
        for first, second, outcome in games:
            self.record(first, second, outcome)

    def counts(self, first: str, second: str) -> Counts:
        """Return wins, draws and losses of the first player."""
        if first <= second:
            return self._pairs.get((first, second), (0.0, 0.0, 0.0))
        losses, draws, wins = self._pairs.get((second, first), (0.0, 0.0, 0.0))
        return wins, draws, losses

    def win_rate(self, first: str, second: str) -> float:
        """Return the win rate of the first player, with draws as half a win."""
        wins, draws, losses = self.counts(first, second)
        games = wins + draws + losses + self.prior
        return (wins + (draws + self.prior) / 2) / games if games else 0.5

    def rename(self, old: str, new: str) -> None:
        """Transfer all results of one player to another."""
        if self._pairs_of(new):
            raise ValueError(f"{new!r} already has results")
        for first, second in self._pairs_of(old):
            other = second if first == old else first
            counts = self.counts(old, other)
            del self._pairs[first, second]
            self._set(new, other, counts)

    def remove(self, name: str) -> None:
        """Remove the results of a player."""
        for pair in self._pairs_of(name):
            del self._pairs[pair]

    def state(self) -> dict[str, Any]:
        """Return the state as plain data, for :meth:`from_state`."""
        pairs = [_PairState(*names, *counts) for names, counts in self._pairs.items()]
        plain: dict[str, Any] = msgspec.to_builtins(
            _ResultsState(self.half_life, self.prior, pairs)
        )
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PairResults:
        """Create results from the result of :meth:`state`."""
        saved = msgspec.convert(state, _ResultsState)
        results = cls(saved.half_life, saved.prior)
        for pair in saved.pairs:
            results._set(pair.first, pair.second, (pair.wins, pair.draws, pair.losses))
        return results

    def _weights(self, count: int) -> tuple[float, float]:
        """Return the discount of older games and the total weight of ``count`` new games."""
        if self.half_life is None:
            return 1.0, float(count)
        decay = math.log(2) / self.half_life
        return math.exp(-decay * count), math.expm1(-decay * count) / math.expm1(-decay)

    def _set(self, first: str, second: str, counts: Counts) -> None:
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
