"""Explain the result of a comparison in a few sentences, and write the call to use."""

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


_LABELS = {GymnasiumOwn.name: "gymnasium make_vec"}

_ABOUT_ONE = (0.95, 1.05)


def label(name: str) -> str:
    """Return the display name of a contender.

    >>> label("shoal"), label("shoal-process-2"), label("loop")
    ('shoal auto', 'shoal process, 2 workers', 'loop')
    """
    library, _, configuration = name.partition("-")
    if library != SUBJECT:
        return _LABELS.get(name, name)
    backend, _, workers = configuration.partition("-")
    if backend == "kernel":
        return f"{library} kernel, 1 thread"
    suffix = f", {workers} worker{'' if workers == '1' else 's'}" if workers else ""
    return f"{library} {backend or 'auto'}{suffix}"


def ratio(value: float) -> str:
    """Format a speed ratio.

    >>> ratio(0.524), ratio(1.0), ratio(36.42)
    ('0.52x', '1.00x', '36x')
    """
    return f"{value:.2f}x" if value < 10 else f"{value:,.0f}x"


def call_of(
    source: str, num_envs: int, options: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """Return the call of ``shoal.make`` as source code; ``source`` is an expression.

    >>> call_of('"Pendulum-v1"', 8, {"backend": "process", "workers": 3}, {"g": 1.62})
    'shoal.make("Pendulum-v1", num_envs=8, backend="process", workers=3, g=1.62)'
    """
    keywords = {"num_envs": num_envs, **options, **arguments}
    return f"shoal.make({source}, {', '.join(f'{n}={_literal(v)}' for n, v in keywords.items())})"


def explanation(outcome: CellResult) -> str:
    """Explain the recommendation, and how reliable it is, in a few sentences."""
    advice = outcome.advice
    if advice is None:
        return "No configuration of Shoal could be measured."
    sentences = [
        _about_recommended(outcome, advice),
        *_about_auto(outcome, advice),
        *_about_others(outcome, advice),
    ]
    if advice.rounds == 1:
        sentences.append("One round is too few for a reliable result.")
    return " ".join(sentences)


def _about_recommended(outcome: CellResult, advice: Advice) -> str:
    name, best = label(advice.recommended), label(advice.best)
    is_noisy = advice.rounds > 1 and not advice.is_sure
    if advice.recommended != advice.best:
        noise = " (within the noise)" if is_noisy else ""
        return f"{name} is simpler and reaches {advice.share:.0%} of the speed of {best}{noise}."
    if advice.runner_up is None or advice.lead is None:
        return f"{name} is the only configuration that could be measured."
    runner_up = label(advice.runner_up)
    is_first = outcome.cell.best([advice.best, LOOP, outcome.best_peer or LOOP]) == advice.best
    fastest = "the fastest" if is_first else "Shoal's fastest configuration"
    if is_noisy:
        return f"{name} is {fastest}, but {runner_up} is within the noise."
    return f"{name} is {fastest}, {_times(advice.lead)} the next, {runner_up}."


def _about_auto(outcome: CellResult, advice: Advice) -> list[str]:
    # Computed as an inverse, to agree with the ratio that the sentence before may contain.
    times = None if advice.recommended == SUBJECT else outcome.speedup(advice.recommended, SUBJECT)
    return [] if times is None else [f"{label(SUBJECT)} reaches {1 / times:.0%} of its speed."]


def _about_others(outcome: CellResult, advice: Advice) -> list[str]:
    phrases = []
    for other, description in (
        (LOOP, "a plain loop"),
        (outcome.best_peer, f"the best peer, {label(outcome.best_peer or '')}"),
    ):
        times = outcome.speedup(advice.recommended, other)
        if times is not None and other is not None:
            # If the paired ratio and the medians disagree on which is faster, call them equal.
            is_ahead = outcome.cell.best([advice.recommended, other]) == advice.recommended
            times = times if is_ahead == (times >= 1) else 1.0
            phrases.append(f"{_times(times)} {description}")
    return [f"It is {' and '.join(phrases)}."] if phrases else []


def _times(value: float) -> str:
    if _ABOUT_ONE[0] <= value <= _ABOUT_ONE[1]:
        return "about as fast as"
    only = "only " if value < 1 else ""
    return f"{only}{ratio(value).removesuffix('x')} times as fast as"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
