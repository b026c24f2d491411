"""A tournament: everybody plays everybody else, on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from shoal.train._league.standings import PairingResult, Standings

__all__ = ["Play", "run_tournament"]

Play = Callable[[str, str, int], tuple[int, int, int]]


def run_tournament(
    names: Sequence[str],
    play: Play,
    games: int,
    on_result: Callable[[PairingResult], None] | None = None,
) -> Standings:
    """Let everybody play everybody else.

    Args:
        names: The players, at least two.
        play: Called with the name of the player on the first side, that on the second, and a
            number of games; plays them, and returns wins, draws and losses of the first.
        games: How many each two play against each other: an even number, half of them with one
            player on the first side and half with the other.
        on_result: Called after each call of ``play``, which are ``len(names) * (len(names) - 1)``.

    Example:
        >>> def play(first, second, games):
        ...     return (games, 0, 0) if first < second else (0, 1, games - 1)
        >>> standings = run_tournament(["ann", "bob", "cid"], play, games=10)
        >>> [(row.place, row.player, row.points) for row in standings.rows()]
        [(1, 'ann', 19.0), (2, 'bob', 10.0), (3, 'cid', 1.0)]
    """
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"a tournament needs two players or more, each once, got {list(names)}")
    if games < 2 or games % 2:
        raise ValueError(f"games must be an even number of at least 2, got {games}")
    Standings(names, [])  # before anything is played that could not be rated
    results = []
    for first, second in permutations(names, 2):
        result = PairingResult(first, second, *play(first, second, games // 2))
        _check(result, games // 2)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return Standings(names, results)


def _check(result: PairingResult, games: int) -> None:
    counts = result[2:]
    if min(counts) < 0 or sum(counts) != games:
        raise ValueError(
            f"wins, draws and losses of {result.first!r} against {result.second!r} must be "
            f"{games} games together, got {counts}"
        )
