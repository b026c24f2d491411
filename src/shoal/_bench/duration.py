"""Estimate the duration of a comparison, and the number of rounds that fit into a budget."""

from __future__ import annotations

from collections.abc import Sequence

from shoal._bench.contender_selection import ContenderSelection
from shoal._bench.contenders.gymnasium_vectors import GymnasiumAsync
from shoal._bench.contenders.sb3_vectors import Sb3Dummy, Sb3Subproc
from shoal._bench.probe import EnvProfile
from shoal._bench.runner import Settings

__all__ = ["expected_seconds", "fitting_rounds"]

_START = 0.8
"""Seconds to start a contender's process."""
_IMPORT_TORCH = 2.5
_FORK = 0.02
"""Seconds to start and stop the process of one environment."""
_WARM_UP = 0.15

_MIN_ROUNDS, _MAX_ROUNDS = 3, 9


def expected_seconds(
    selection: ContenderSelection, profile: EnvProfile, num_envs: Sequence[int], settings: Settings
) -> float:
    """Estimate the seconds to measure all contenders with each number of environments."""
    return _before_rounds(selection, profile, num_envs) + settings.rounds * _per_round(
        selection, profile, num_envs, settings.seconds
    )


def fitting_rounds(
    selection: ContenderSelection,
    profile: EnvProfile,
    num_envs: Sequence[int],
    seconds: float,
    budget: float,
) -> int:
    """Return the number of rounds that fit into the budget, within fixed limits.

    ``seconds`` is how long each contender is measured per round.
    """
    remaining = budget - _before_rounds(selection, profile, num_envs)
    fitting = int(remaining / _per_round(selection, profile, num_envs, seconds))
    return min(_MAX_ROUNDS, max(_MIN_ROUNDS, fitting))


def _before_rounds(
    selection: ContenderSelection, profile: EnvProfile, num_envs: Sequence[int]
) -> float:
    with_torch = sum(isinstance(peer, Sb3Dummy | Sb3Subproc) for peer in selection.peers)
    forking = sum(isinstance(peer, GymnasiumAsync | Sb3Subproc) for peer in selection.peers)
    seconds = _START * len(selection.contenders) + _IMPORT_TORCH * with_torch
    for count in num_envs:
        opening = count * (profile.making + profile.reset + profile.step) + _WARM_UP
        seconds += opening * len(selection.names(count)) + forking * _FORK * count
    return seconds


def _per_round(
    selection: ContenderSelection, profile: EnvProfile, num_envs: Sequence[int], seconds: float
) -> float:
    # The warm-up takes a tenth of the time. Both it and the measurement step at least once.
    return sum(
        len(selection.names(count)) * max(1.1 * seconds, 2 * count * profile.step)
        for count in num_envs
    )
