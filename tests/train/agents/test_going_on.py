"""An agent that is restored goes on bit by bit as the one it was saved from."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._files import read_file, write_file
from tests.train.agents.making import SIZE, SLOTS, VARIANTS, Stream, go_on, make, same

EACH = pytest.mark.parametrize("variant", VARIANTS)
SEEN = np.random.default_rng(0).normal(0, 2, (20, SIZE)).astype(np.float32)


def through_a_file(state, folder):
    write_file(folder / "state", {"agent": state})
    return read_file(folder / "state")["agent"]


@EACH
@pytest.mark.parametrize("rounds", [0, 1, 8, 15])
def test_restored_agents_go_on_bit_by_bit(variant, rounds, tmp_path):
    """8 is where a rollout of PPO is full, and nothing is learnt from it yet."""
    first, stream = make(variant, seed=1), Stream(1)
    go_on(first, stream, rounds)
    other = make(variant, seed=2)
    other.restore(through_a_file(first.state(), tmp_path))
    assert same(other.state(), first.state())
    twin = stream.copy()
    expected = go_on(first, stream, 20, begun=rounds)
    assert same(go_on(other, twin, 20, begun=rounds), expected)
    assert same(other.state(), first.state())
    assert first.metrics() == other.metrics()
    assert np.array_equal(first.act_batch(SEEN), other.act_batch(SEEN))


@EACH
def test_restoring_an_agent_that_has_learnt_something_else_is_the_same(variant, tmp_path):
    """Nothing of what it was before is left."""
    first, stream = make(variant, seed=1), Stream(1)
    go_on(first, stream, 11)
    other = make(variant, seed=2)
    go_on(other, Stream(7), 27)
    other.restore(through_a_file(first.state(), tmp_path))
    twin = stream.copy()
    assert same(go_on(other, twin, 15, begun=11), go_on(first, stream, 15, begun=11))
    assert same(other.state(), first.state())


@EACH
def test_one_state_restores_many(variant):
    """Each of them goes on by itself: none writes to what another reads."""
    first, stream = make(variant, seed=1), Stream(1)
    go_on(first, stream, 13)
    state = copy.deepcopy(first.state())
    others = [make(variant, seed=seed) for seed in (2, 3)]
    for other in others:
        other.restore(state)
    twins = [stream.copy(), stream.copy()]
    for begun in range(13, 25):
        for other, twin in zip(others, twins, strict=True):
            go_on(other, twin, 1, begun=begun)
    go_on(first, stream, 12, begun=13)
    for other in others:
        assert same(other.state(), first.state())


@EACH
def test_without_what_was_experienced_all_that_was_learnt_is_there(variant, tmp_path):
    first = make(variant, seed=1)
    go_on(first, Stream(1), 20)
    small = through_a_file(first.state(with_memory=False), tmp_path)
    assert not {"memory", "rollout", "priorities", "n_step"} & small.keys()
    other = make(variant, seed=2)
    other.restore(small)
    assert same(other.state(with_memory=False), first.state(with_memory=False))
    assert np.array_equal(other.evaluate(SEEN), first.evaluate(SEEN))
    go_on(other, Stream(3), 20, begun=20)
    assert np.isfinite(other.evaluate(SEEN)).all()


@EACH
def test_cutting_and_forgetting_are_restored_too(variant, tmp_path):
    first, stream = make(variant, seed=1), Stream(1)
    go_on(first, stream, 9)
    first.cut()
    first.clear_memory()
    other = make(variant, seed=2)
    other.restore(through_a_file(first.state(), tmp_path))
    twin = stream.copy()
    assert same(go_on(other, twin, 15), go_on(first, stream, 15))
    assert same(other.state(), first.state())


@settings(max_examples=25, deadline=None)
@given(
    variant=st.sampled_from(sorted(VARIANTS)),
    events=st.lists(st.sampled_from(["step", "cut", "clear", "metrics", "restore"]), max_size=25),
)
def test_any_history_can_be_interrupted(variant, events):
    """An agent that is restored from its own state at any time is the same as one that is not."""
    steady, interrupted = make(variant, seed=1), make(variant, seed=1)
    stream, twin = Stream(1), Stream(1)
    for number, event in enumerate(events):
        if event == "restore":
            state = copy.deepcopy(interrupted.state())
            interrupted = make(variant, seed=50 + number)
            interrupted.restore(state)
            continue
        for agent, its_stream in ((steady, stream), (interrupted, twin)):
            if event == "step":
                go_on(agent, its_stream, 2, begun=number)
            elif event == "cut":
                agent.cut()
            elif event == "clear":
                agent.clear_memory()
        if event == "metrics":
            assert steady.metrics() == interrupted.metrics()
    assert same(steady.state(), interrupted.state())


@EACH
def test_an_agent_that_forgets_learns_from_nothing_before(variant):
    agent = make(variant)
    go_on(agent, Stream(0), 5)
    agent.cut()
    agent.clear_memory()
    before = agent.evaluate(SEEN)
    assert agent.learn(3) == 0
    assert np.array_equal(agent.evaluate(SEEN), before)
    assert make(variant).learn(5) == 0


def test_updates_are_as_many_as_are_due():
    for variant in ("DDDQN", "DDDQN by priority", "SAC"):
        agent = make(variant)
        go_on(agent, Stream(0), 8, updates=0)
        assert [agent.learn(due) for due in (0, 1, 5)] == [0, 1, 5]
        assert agent.updates == 6


@pytest.mark.parametrize("variant", ["DDDQN", "SAC", "PPO of choices"])
def test_recording_updates_changes_nothing_on_the_cpu(variant):
    one, other = make(variant), make(variant, compile="graph")
    assert same(go_on(one, Stream(0), 30), go_on(other, Stream(0), 30))
    assert same(dict(one.network.state_dict()), dict(other.network.state_dict()))


@EACH
def test_metrics_are_finite_and_of_the_last_updates_only(variant):
    agent = make(variant)
    assert agent.metrics() == {}
    go_on(agent, Stream(0), 20)
    told = agent.metrics()
    assert tuple(told) == agent.metric_names
    assert all(isinstance(value, float) and np.isfinite(value) for value in told.values())
    assert agent.metrics() == {}


@EACH
@pytest.mark.parametrize("slots", [1, 3, 8])
def test_any_number_of_slots_is_trained_in(variant, slots):
    agent, stream = make(variant, num_slots=slots), Stream(0, slots)
    for actions in go_on(agent, stream, 3 * SLOTS * 8 // slots):
        assert len(actions) == slots
    assert agent.updates > 0
    assert np.isfinite(agent.evaluate(SEEN)).all()
