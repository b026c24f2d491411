"""What a comparison comes to, in words, and as the line to paste."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shoal._bench.advice import Advice
from shoal._bench.comparison import CellResult
from shoal._bench.contender_selection import LOOP
from shoal._bench.contenders.gymnasium_vectors import GymnasiumOwn
from shoal._bench.results import SUBJECT

__all__ = ["call_of", "explanation", "label", "ratio"]


_PLAINER = {GymnasiumOwn.name: "gymnasium make_vec"}

_ABOUT_ONE = (0.95, 1.05)


def label(name: str) -> str:
    """Say which contender it is.

    >>> label("shoal"), label("shoal-process-2"), label("loop")
    ('shoal auto', 'shoal process, 2 workers', 'loop')
    """
    library, _, way = name.partition("-")
    if library != SUBJECT:
        return _PLAINER.get(name, name)
    backend, _, workers = way.partition("-")
    if backend == "kernel":
        return f"{library} kernel, 1 thread"
    many = f", {workers} worker{'' if workers == '1' else 's'}" if workers else ""
    return f"{library} {backend or 'auto'}{many}"


def ratio(value: float) -> str:
    """Write how many times as fast something is.

    >>> ratio(0.524), ratio(1.0), ratio(36.42)
    ('0.52x', '1.00x', '36x')
    """
    return f"{value:.2f}x" if value < 10 else f"{value:,.0f}x"


def call_of(
    what: str, num_envs: int, options: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """Write the call that makes a vector this way; ``what`` is an expression.

    >>> call_of('"Pendulum-v1"', 8, {"backend": "process", "workers": 3}, {"g": 1.62})
    'shoal.make("Pendulum-v1", num_envs=8, backend="process", workers=3, g=1.62)'
    """
    given = {"num_envs": num_envs, **options, **arguments}
    return f"shoal.make({what}, {', '.join(f'{n}={_literal(v)}' for n, v in given.items())})"


def explanation(outcome: CellResult) -> str:
    """Say in a few sentences why the recommended way is it, and how sure that is."""
    advice = outcome.advice
    if advice is None:
        return "None of Shoal's ways could be measured."
    said = [_standing(outcome, advice), *_of_auto(outcome, advice), *_of_others(outcome, advice)]
    if advice.rounds == 1:
        said.append("One round is too few to be sure.")
    return " ".join(said)


def _standing(outcome: CellResult, advice: Advice) -> str:
    way, best = label(advice.way), label(advice.best)
    is_noisy = advice.rounds > 1 and not advice.is_sure
    if advice.way != advice.best:
        noise = ", within the noise" if is_noisy else ""
        return f"{way} reaches {advice.share:.0%} of {best}{noise}, and is simpler."
    if advice.runner_up is None or advice.lead is None:
        return f"{way} is the only way that could be measured."
    runner_up = label(advice.runner_up)
    is_first = outcome.cell.best([advice.best, LOOP, outcome.best_peer or LOOP]) == advice.best
    fastest = "the fastest" if is_first else "the fastest of Shoal's"
    if is_noisy:
        return f"{way} is {fastest}, though {runner_up} is within the noise."
    return f"{way} is {fastest}, {_times(advice.lead)} {runner_up}, the next."


def _of_auto(outcome: CellResult, advice: Advice) -> list[str]:
    # The inverse of how many times as fast the other is, which may have been said just before.
    times = None if advice.way == SUBJECT else outcome.times(advice.way, SUBJECT)
    return [] if times is None else [f"{label(SUBJECT)} reaches {1 / times:.0%} of it."]


def _of_others(outcome: CellResult, advice: Advice) -> list[str]:
    said = []
    for other, what in (
        (LOOP, "a plain loop"),
        (outcome.best_peer, f"the best peer, {label(outcome.best_peer or '')}"),
    ):
        times = outcome.times(advice.way, other)
        if times is not None and other is not None:
            # Where rounds and medians do not agree on who is ahead, nobody is.
            is_ahead = outcome.cell.best([advice.way, other]) == advice.way
            said.append(f"{_times(times if is_ahead == (times >= 1) else 1.0)} {what}")
    return [f"It is {' and '.join(said)}."] if said else []


def _times(value: float) -> str:
    if _ABOUT_ONE[0] <= value <= _ABOUT_ONE[1]:
        return "about as fast as"
    only = "only " if value < 1 else ""
    return f"{only}{ratio(value).removesuffix('x')} times as fast as"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
