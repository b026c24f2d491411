"""How strong players are held to be, by the games they have played."""

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
    """Ratings of players, by games of two that one of them wins, or nobody.

    A player's strength is a mean, and a deviation that tells how sure it is. A draw counts as half
    a win and half a loss (of the models of openskill, Plackett-Luce does that; Thurstone-Mosteller
    would take a draw for strong evidence of equal strength, which is wrong where draws are usual).

    Args:
        drift: How much a game adds to the deviations of its players, for they may have changed
            since. 0 is right for players that do not learn.

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
        """Take in a player that has not played yet.

        Args:
            name: Nobody else's.
            role: As :class:`~shoal.train._records.RatingRecord` has it.
            like: The player it was made of, whose rating it begins with.
        """
        if name in self._players:
            raise ValueError(f"there is a player called {name!r} already")
        strength = self._model.rating()
        if like is not None:
            model = self._player(like).strength
            strength = self._model.rating(model.mu, model.sigma)
        self._players[name] = _Player(role, strength)

    def remove(self, name: str) -> None:
        """Forget a player. What others have won or lost against it remains in their ratings."""
        self._player(name)
        del self._players[name]

    def record(self, first: str, second: str, outcome: int, count: int = 1) -> None:
        """Take notice of games that ended alike.

        Args:
            first: A player.
            second: Another one.
            outcome: 1 if the first has won, -1 if the second has, 0 for a draw.
            count: How many games.
        """
        if count < 0:
            raise ValueError(f"count must be at least 0, got {count}")
        self._check(first, second, outcome)
        self._play(repeat((first, second, outcome), count))

    def record_many(self, games: Iterable[tuple[str, str, int]]) -> None:
        """Take notice of games, in the order in which they were played.

        Args:
            games: The first player, the second, and the outcome of each, as for :meth:`record`.
        """
        games = list(games)
        for game in set(games):
            self._check(*game)
        self._play(games)

    def rating(self, name: str) -> tuple[float, float]:
        """A player's strength: mean and deviation."""
        strength = self._player(name).strength
        return strength.mu, strength.sigma

    def lower_bound(self, name: str) -> float:
        """What a player's strength is at least, in all likelihood: mean less three deviations."""
        mean, deviation = self.rating(name)
        return mean - 3 * deviation

    def games(self, name: str) -> int:
        """How many games a player has played."""
        return self._player(name).games

    def expected(self, first: str, second: str) -> float:
        """How much of a game the first player is expected to win against the second.

        It is the probability to win, half the probability of a draw included.
        """
        one, other = self._player(first).strength, self._player(second).strength
        spread = math.sqrt(2 * self._model.beta**2 + one.sigma**2 + other.sigma**2)
        # The model's own predict_win has the normal distribution here, where its updates have the
        # logistic one; only with that is this the share of games that led to the ratings.
        return (1 + math.tanh((one.mu - other.mu) / spread / 2)) / 2

    def table(self, step: int) -> list[RatingRecord]:
        """All players as they are at a step of the run, the strongest first."""
        rows = []
        for name, player in self._players.items():
            mean, deviation = self.rating(name)
            bound = self.lower_bound(name)
            rows.append(RatingRecord(step, name, player.role, bound, mean, deviation, player.games))
        return sorted(rows, key=lambda row: -row.rating)

    def state(self) -> dict[str, Any]:
        """All of it as plain data, from which :meth:`from_state` makes its equal."""
        players = [
            _PlayerState(name, player.role, *self.rating(name), player.games)
            for name, player in self._players.items()
        ]
        plain: dict[str, Any] = msgspec.to_builtins(_RatingsState(self.drift, players))
        return plain

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ratings:
        """Ratings that go on where those of this state were."""
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
            known = ", ".join(map(repr, self._players)) or "nobody"
            raise ValueError(f"there is no player called {name!r}, there is {known}") from None

    def _check(self, first: str, second: str, outcome: int) -> None:
        if self._player(first) is self._player(second):
            raise ValueError(f"{first!r} cannot be rated by a game against itself")
        if outcome not in _RANKS:
            raise ValueError(f"an outcome must be 1, 0 or -1, got {outcome!r}")

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
            "ratings need openskill, which is not installed: pip install 'shoal[train]'"
        ) from error
    return PlackettLuce(tau=drift)
