"""Round-robin tournaments."""

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
    """Play a round-robin tournament, with each player on both sides.

    Args:
        names: Names of at least two players, without duplicates.
        play: Called with the name of the player on the first side, the name of the player on the
            second side and a number of games. Returns wins, draws and losses of the first player.
        games: Number of games per pair. Must be even: each player plays half of them on each side.
        on_result: Called after each of the ``len(names) * (len(names) - 1)`` calls of ``play``.

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
        raise ValueError(f"games must be a positive even number, got {games}")
    Standings(names, [])  # fail before the first game if openskill is missing
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
            f"wins, draws and losses of {result.first!r} against {result.second!r} must sum to "
            f"{games}, got {counts}"
        )
