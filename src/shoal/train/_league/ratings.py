"""Skill ratings of players."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.errors import MissingExtraError
from shoal.train._records import RatingRecord

if TYPE_CHECKING:
    from openskill.models import PlackettLuce, PlackettLuceRating

__all__ = ["Ratings"]

_RANKS = {1: [1.0, 2.0], 0: [1.0, 1.0], -1: [2.0, 1.0]}


class Ratings:
    """Ratings of players from two-player games with or without a winner.

    A rating consists of a mean and a standard deviation. A draw counts as half a win and half a
    loss. Among the models of openskill, Plackett-Luce has this property; Thurstone-Mosteller treats
    a draw as strong evidence of equal strength, which is wrong where draws are common.

    Args:
        drift: Uncertainty added to a player's rating per game, because players change while they
            learn. Use 0 for players that do not learn.

    Example:
        >>> ratings = Ratings()
        >>> ratings.add("main", "main")
        >>> ratings.add("weak", "scripted")
        >>> ratings.record("main", "weak", 1, count=20)
        >>> [row.player for row in ratings.table(step=0)]
        ['main', 'weak']
        >>> ratings.expected("main", "weak") > 0.8
        True
    """

    def __init__(self, drift: float = 25 / 300) -> None:
        if not 0 <= drift < math.inf:
            raise ValueError(f"drift must be a number of at least 0, got {drift}")
        self.drift = float(drift)
        self._model = _model(self.drift)
        self._players: dict[str, _Player] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._players

    def add(self, name: str, role: str, like: str | None = None) -> None:
        """Add a player.

        Args:
            name: A unique name.
            role: The role, as in :class:`~shoal.train._records.RatingRecord`.
            like: The name of a player whose rating is copied.
        """
        if name in self._players:
            raise ValueError(f"the player {name!r} already exists")
        strength = self._model.rating()
        if like is not None:
            model = self._player(like).strength
            strength = self._model.rating(model.mu, model.sigma)
        self._players[name] = _Player(role, strength)

    def remove(self, name: str) -> None:
        """Remove a player. Its games remain part of its opponents' ratings."""
        self._player(name)
        del self._players[name]

    def record(self, first: str, second: str, outcome: int, count: int = 1) -> None:
        """Record games with the same outcome.

        Args:
            first: The first player.
            second: The second player.
            outcome: 1 if the first player won, -1 if the second won, 0 for a draw.
            count: Number of games.
        """
        if count < 0:
            raise ValueError(f"count must be at least 0, got {count}")
        self._check(first, second, outcome)
        self._play(repeat((first, second, outcome), count))

    def record_many(self, games: Iterable[tuple[str, str, int]]) -> None:
        """Record games in chronological order.

        Args:
            games: First player, second player and outcome of each game: see :meth:`record`.
        """
        games = list(games)
        for game in set(games):
            self._check(*game)
        self._play(games)

    def rating(self, name: str) -> tuple[float, float]:
        """Return the mean and standard deviation of a player's rating."""
        strength = self._player(name).strength
        return strength.mu, strength.sigma

    def lower_bound(self, name: str) -> float:
        """Return a conservative estimate of a player's strength: mean minus three deviations."""
        mean, deviation = self.rating(name)
        return mean - 3 * deviation

    def games(self, name: str) -> int:
        """Return the number of games of a player."""
        return self._player(name).games

    def expected(self, first: str, second: str) -> float:
        """Return the expected score of the first player against the second.

        This is the probability of a win plus half the probability of a draw.
        """
        one, other = self._player(first).strength, self._player(second).strength
        spread = math.sqrt(2 * self._model.beta**2 + one.sigma**2 + other.sigma**2)
        # The model's predict_win uses the normal distribution, but its updates use the logistic
        # distribution. Only the latter reproduces the score from which the ratings were computed.
        return (1 + math.tanh((one.mu - other.mu) / spread / 2)) / 2

    def table(self, step: int) -> list[RatingRecord]:
        """Return the ratings of all players, strongest first, dated at a step of the run."""
        rows = []
        for name, player in self._players.items():
            mean, deviation = self.rating(name)
            bound = self.lower_bound(name)
            rows.append(RatingRecord(step, name, player.role, bound, mean, deviation, player.games))
        return sorted(rows, key=lambda row: -row.rating)

    def state(self) -> dict[str, Any]:
        """Return the state as plain data, for :meth:`from_state`."""
        players = [
            _PlayerState(name, player.role, *self.rating(name), player.games)
            for name, player in self._players.items()
        ]
        plain: dict[str, Any] = msgspec.to_builtins(_RatingsState(self.drift, players))
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ratings:
        """Create ratings from the result of :meth:`state`."""
        saved = msgspec.convert(state, _RatingsState)
        ratings = cls(saved.drift)
        for player in saved.players:
            strength = ratings._model.rating(player.mean, player.deviation)
            ratings._players[player.name] = _Player(player.role, strength, player.games)
        return ratings

    def _player(self, name: str) -> _Player:
        try:
            return self._players[name]
        except KeyError:
            names = ", ".join(map(repr, self._players)) or "none"
            raise ValueError(f"unknown player {name!r}, the players are {names}") from None

    def _check(self, first: str, second: str, outcome: int) -> None:
        if self._player(first) is self._player(second):
            raise ValueError(f"players must be different, got {first!r} twice")
        if outcome not in _RANKS:
            raise ValueError(f"outcome must be 1, 0 or -1, got {outcome!r}")

    def _play(self, games: Iterable[tuple[str, str, int]]) -> None:
        players, rate = self._players, self._model.rate
        for first, second, outcome in games:
            one, other = players[first], players[second]
            rated = rate([[one.strength], [other.strength]], ranks=_RANKS[outcome])
            one.strength, other.strength = rated[0][0], rated[1][0]
            one.games += 1
            other.games += 1


@dataclass(slots=True)
class _Player:
    role: str
    strength: PlackettLuceRating
    games: int = 0


class _PlayerState(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    role: str
    mean: float
    deviation: float
    games: int


class _RatingsState(msgspec.Struct, forbid_unknown_fields=True):
    drift: float
    players: list[_PlayerState]


def _model(drift: float) -> PlackettLuce:
    try:
        from openskill.models import PlackettLuce
    except ImportError as error:
        raise MissingExtraError(
            'ratings need openskill, which is not installed: pip install "shoal[train]"'
        ) from error
    return PlackettLuce(tau=drift)
