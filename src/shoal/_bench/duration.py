"""How long a comparison will take, and how many rounds fit into a given time."""

from __future__ import annotations

from collections.abc import Sequence

from shoal._bench.contender_selection import ContenderSelection
from shoal._bench.contenders.gymnasium_vectors import GymnasiumAsync
from shoal._bench.contenders.sb3_vectors import Sb3Dummy, Sb3Subproc
from shoal._bench.probe import EnvProfile
from shoal._bench.runner import Settings

__all__ = ["expected_seconds", "fitting_rounds"]

_START = 0.8
"""Seconds until a contender's process is there."""
_IMPORT_TORCH = 2.5
_FORK = 0.02
"""Seconds for each environment that has a process of its own, to begin and to end."""
_WARM_UP = 0.15

_FEWEST, _MOST = 3, 9


def expected_seconds(
    field: ContenderSelection, seen: EnvProfile, num_envs: Sequence[int], settings: Settings
) -> float:
    """Guess how long it takes to measure all contenders with each number of environments."""
    return _before_rounds(field, seen, num_envs) + settings.rounds * _of_round(
        field, seen, num_envs, settings.seconds
    )


def fitting_rounds(
    field: ContenderSelection,
    seen: EnvProfile,
    num_envs: Sequence[int],
    seconds: float,
    budget: float,
) -> int:
    """Choose how many rounds to measure so that all is done within the budget, but a few at least.

    ``seconds`` is how long a contender is measured in each.
    """
    left = budget - _before_rounds(field, seen, num_envs)
    fitting = int(left / _of_round(field, seen, num_envs, seconds))
    return min(_MOST, max(_FEWEST, fitting))


def _before_rounds(field: ContenderSelection, seen: EnvProfile, num_envs: Sequence[int]) -> float:
    with_torch = sum(isinstance(peer, Sb3Dummy | Sb3Subproc) for peer in field.peers)
    forking = sum(isinstance(peer, GymnasiumAsync | Sb3Subproc) for peer in field.peers)
    seconds = _START * len(field.contenders) + _IMPORT_TORCH * with_torch
    for count in num_envs:
        opening = count * (seen.making + seen.reset + seen.step) + _WARM_UP
        seconds += opening * len(field.names(count)) + forking * _FORK * count
    return seconds


def _of_round(
    field: ContenderSelection, seen: EnvProfile, num_envs: Sequence[int], seconds: float
) -> float:
    # The warm-up before it is a part of it; either is a step of all environments at the least.
    return sum(
        len(field.names(count)) * max(1.1 * seconds, 2 * count * seen.step) for count in num_envs
    )
