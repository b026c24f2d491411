"""Records of invented runs, and their comparison."""

import math
import random
from typing import get_type_hints

from hypothesis import strategies as st

from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.log_reader import RunRecords

KINDS = [EpisodeRecord, ProgressRecord, EvaluationRecord, RatingRecord]

TEXTS = st.text(max_size=12) | st.text(st.sampled_from("\\nr\n\r,\"' \t\0\ud800é"), max_size=8)
INTEGERS = st.integers(-(2**70), 2**70)
FIELDS = {
    str: TEXTS,
    int: INTEGERS,
    float: st.floats(),
    int | None: st.none() | INTEGERS,
    float | None: st.none() | st.floats(),
    dict[str, float]: st.dictionaries(TEXTS, st.floats(), max_size=3),
}


def records(kind):
    """Return a strategy for records of a kind."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: FIELDS[hints[name]] for name in kind._fields})


def same(records, others):
    """Return whether records are equal, with nan equal to nan."""
    return repr(records) == repr(others)


def progress(step=1000, **changes):
    """Return a progress record of a run of 4000 steps."""
    record = ProgressRecord(
        step=step,
        episodes=step // 80,
        updates=step // 2,
        seconds=step / 100,
        phase="basics",
        phase_number=0,
        phase_share=min(1.0, step / 4000),
        share=min(1.0, step / 4000),
        steps_per_second=100.0,
        updates_per_second=50.0,
        mean_reward=step / 1000,
        win_rate=0.5,
        losses={"critic": 0.25, "actor": -1.5},
    )
    return record._replace(**changes)


def evaluation(step=1000, opponent="weak", **changes):
    """Return an evaluation of ten games against an opponent."""
    record = EvaluationRecord(step, opponent, 10, 6, 1, 3, 0.6, 0.31, 0.83, 2.5, 77.0)
    return record._replace(**changes)


def evaluation_without_opponent(step=1000, **changes):
    """Return an evaluation of ten episodes without an opponent or a winner."""
    record = EvaluationRecord(step, "", 10, None, None, None, None, -3.0, 4.0, 0.5, 77.0)
    return record._replace(**changes)


def rating(step=1000, player="main", **changes):
    """Return the rating of a player."""
    record = RatingRecord(step, player, "main", 18.5, 25.0, 2.1666, 12)
    return record._replace(**changes)


def episode(number=1, **changes):
    """Return an episode that was won."""
    record = EpisodeRecord(80 * number, number, "basics", 0, 80, 1.5, 2.5, "weak", 1)
    return record._replace(**changes)


def run(episodes=200):
    """Return the records of a run with two phases, two opponents and a league."""
    noise = random.Random(0)
    progress_records = [
        progress(step, phase=name, phase_number=number)
        for step in range(500, 4001, 500)
        for number, name in [(int(step > 2000), "self-play" if step > 2000 else "basics")]
    ]
    return RunRecords(
        [episode(n, reward=math.sin(n / 50) + noise.gauss(0, 1)) for n in range(1, episodes + 1)],
        progress_records,
        [evaluation(step, name) for step in (1000, 2000, 3000) for name in ("weak", "strong")],
        [rating(step, name) for step in (1000, 2000) for name in ("main", "snapshot-1")],
    )
