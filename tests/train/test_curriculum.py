"""Progress through a curriculum: episodes are counted exactly for any number of slots."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._config.schema import Phase
from shoal.train._curriculum import Progress


@st.composite
def curricula(draw):
    lengths = draw(
        st.lists(
            st.tuples(st.sampled_from(["episodes", "steps"]), st.integers(1, 40)),
            min_size=1,
            max_size=4,
        )
    )
    return [Phase(name=str(number), **{kind: n}) for number, (kind, n) in enumerate(lengths)]


@settings(max_examples=150, deadline=None)
@given(curricula(), st.integers(1, 9), st.data())
def test_episodes_and_steps_are_counted_exactly(phases, slots, data):
    progress, share = Progress(phases), 0.0
    assert progress.share == 0.0
    for number, phase in enumerate(phases):
        assert progress.phase is phase
        assert progress.number == number
        assert (progress.steps, progress.episodes, progress.started) == (0, 0, 0)
        counted = rounds = 0
        while not progress.is_phase_over:
            ended = data.draw(st.integers(0, slots))
            counted += progress.count(slots, ended)
            rounds += 1
            assert progress.episodes == counted
            assert progress.steps == rounds * slots
            assert share <= progress.share <= 1.0
            share = progress.share
            assert 0.0 <= progress.phase_share <= 1.0
            if rounds > 60:  # limit the length of the test
                counted += progress.count(slots, slots)
                rounds += 1
        if phase.episodes is not None:
            assert counted == phase.episodes
        else:
            assert rounds == math.ceil(phase.steps / slots)
        assert not progress.is_over
        progress.begin_next()
    assert progress.is_over
    assert progress.share == 1.0
    assert progress.phase is phases[-1]


def test_surplus_episodes_of_a_phase_are_not_counted():
    progress = Progress([Phase(name="one", episodes=10)])
    assert [progress.count(8, 4) for _ in range(4)] == [4, 4, 2, 0]
    assert (progress.episodes, progress.steps) == (10, 32)
    assert progress.is_phase_over


def test_phase_limited_by_steps_counts_all_episodes():
    progress = Progress([Phase(name="one", steps=10)])
    assert [progress.count(8, 4), progress.count(8, 8)] == [4, 8]
    assert progress.phase_share == 1.0


def test_started_episodes_are_numbered_within_their_phase():
    progress = Progress([Phase(name="one", episodes=2), Phase(name="two", episodes=2)])
    assert [progress.begin_episode() for _ in range(3)] == [0, 1, 2]
    progress.begin_next()
    assert [progress.begin_episode() for _ in range(2)] == [0, 1]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        # Phases are weighted by length if all lengths have the same unit, and equally otherwise.
        ([("steps", 10), ("steps", 30)], [0.0, 0.125, 0.25, 0.625]),
        ([("episodes", 10), ("episodes", 30)], [0.0, 0.125, 0.25, 0.625]),
        ([("steps", 10), ("episodes", 30)], [0.0, 0.25, 0.5, 0.75]),
    ],
)
def test_share_weights_phases_by_length(lengths, expected):
    phases = [Phase(name=str(n), **{kind: size}) for n, (kind, size) in enumerate(lengths)]
    shares, progress = [], Progress(phases)
    for kind, size in lengths:
        shares.append(progress.share)
        half = size // 2
        progress.count(half if kind == "steps" else 0, half if kind == "episodes" else 0)
        shares.append(progress.share)
        progress.begin_next()
    assert shares == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(curricula(), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=30))
def test_restored_progress_is_identical(phases, events):
    one = Progress(phases)
    for slots, ended in events:
        if one.is_over:
            break
        one.begin_episode()
        one.count(slots, min(slots, ended))
        if one.is_phase_over:
            one.begin_next()
    other = Progress(phases)
    state = one.state()
    other.restore(dict(state))
    assert other.state() == state
    assert (other.share, other.phase_share, other.phase) == (one.share, one.phase_share, one.phase)
    other.begin_episode()
    assert one.state() == state
