"""A restored agent continues exactly like the one whose state was saved."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._files import read_file, write_file
from tests.train.agents.making import SIZE, SLOTS, VARIANTS, Stream, make, same, train

EACH = pytest.mark.parametrize("variant", VARIANTS)
STATES = np.random.default_rng(0).normal(0, 2, (20, SIZE)).astype(np.float32)


def through_a_file(state, folder):
    write_file(folder / "state", {"agent": state})
    return read_file(folder / "state")["agent"]


@EACH
@pytest.mark.parametrize("rounds", [0, 1, 8, 15])
def test_a_restored_agent_continues_bit_for_bit(variant, rounds, tmp_path):
    """After 8 rounds, PPO's rollout is full and not yet learned from."""
    first, stream = make(variant, seed=1), Stream(1)
    train(first, stream, rounds)
    other = make(variant, seed=2)
    other.restore(through_a_file(first.state(), tmp_path))
    assert same(other.state(), first.state())
    twin = stream.copy()
    expected = train(first, stream, 20, start=rounds)
    assert same(train(other, twin, 20, start=rounds), expected)
    assert same(other.state(), first.state())
    assert first.metrics() == other.metrics()
    assert np.array_equal(first.act_batch(STATES), other.act_batch(STATES))


@EACH
def test_restoring_replaces_the_state_of_a_trained_agent(variant, tmp_path):
    first, stream = make(variant, seed=1), Stream(1)
    train(first, stream, 11)
    other = make(variant, seed=2)
    train(other, Stream(7), 27)
    other.restore(through_a_file(first.state(), tmp_path))
    twin = stream.copy()
    assert same(train(other, twin, 15, start=11), train(first, stream, 15, start=11))
    assert same(other.state(), first.state())


@EACH
def test_one_state_can_restore_several_agents(variant):
    """The restored agents share no memory with each other or with the state."""
    first, stream = make(variant, seed=1), Stream(1)
    train(first, stream, 13)
    state = copy.deepcopy(first.state())
    others = [make(variant, seed=seed) for seed in (2, 3)]
    for other in others:
        other.restore(state)
    twins = [stream.copy(), stream.copy()]
    for start in range(13, 25):
        for other, twin in zip(others, twins, strict=True):
            train(other, twin, 1, start=start)
    train(first, stream, 12, start=13)
    for other in others:
        assert same(other.state(), first.state())


@EACH
def test_a_state_without_memory_restores_the_networks(variant, tmp_path):
    first = make(variant, seed=1)
    train(first, Stream(1), 20)
    small = through_a_file(first.state(with_memory=False), tmp_path)
    assert not {"memory", "rollout", "priorities", "n_step"} & small.keys()
    other = make(variant, seed=2)
    other.restore(small)
    assert same(other.state(with_memory=False), first.state(with_memory=False))
    assert np.array_equal(other.evaluate(STATES), first.evaluate(STATES))
    train(other, Stream(3), 20, start=20)
    assert np.isfinite(other.evaluate(STATES)).all()


@EACH
def test_a_state_after_cut_and_clear_memory_is_restored(variant, tmp_path):
    first, stream = make(variant, seed=1), Stream(1)
    train(first, stream, 9)
    first.cut()
    first.clear_memory()
    other = make(variant, seed=2)
    other.restore(through_a_file(first.state(), tmp_path))
    twin = stream.copy()
    assert same(train(other, twin, 15), train(first, stream, 15))
    assert same(other.state(), first.state())


@settings(max_examples=25, deadline=None)
@given(
    variant=st.sampled_from(sorted(VARIANTS)),
    events=st.lists(st.sampled_from(["step", "cut", "clear", "metrics", "restore"]), max_size=25),
)
def test_restoring_at_any_time_changes_nothing(variant, events):
    """An agent restored from its own state equals one that was never restored."""
    steady, interrupted = make(variant, seed=1), make(variant, seed=1)
    stream, twin = Stream(1), Stream(1)
    for number, event in enumerate(events):
        if event == "restore":
            state = copy.deepcopy(interrupted.state())
            interrupted = make(variant, seed=50 + number)
            interrupted.restore(state)
            continue
        for agent, source in ((steady, stream), (interrupted, twin)):
            if event == "step":
                train(agent, source, 2, start=number)
            elif event == "cut":
                agent.cut()
            elif event == "clear":
                agent.clear_memory()
        if event == "metrics":
            assert steady.metrics() == interrupted.metrics()
    assert same(steady.state(), interrupted.state())


@EACH
def test_nothing_is_learned_without_stored_experience(variant):
    agent = make(variant)
    train(agent, Stream(0), 5)
    agent.cut()
    agent.clear_memory()
    before = agent.evaluate(STATES)
    assert agent.learn(3) == 0
    assert np.array_equal(agent.evaluate(STATES), before)
    assert make(variant).learn(5) == 0


def test_off_policy_agents_make_the_requested_number_of_updates():
    for variant in ("DDDQN", "DDDQN prioritized", "SAC"):
        agent = make(variant)
        train(agent, Stream(0), 8, updates=0)
        assert [agent.learn(due) for due in (0, 1, 5)] == [0, 1, 5]
        assert agent.updates == 6


@pytest.mark.parametrize("variant", ["DDDQN", "SAC", "PPO discrete"])
def test_compile_graph_changes_nothing_on_the_cpu(variant):
    one, other = make(variant), make(variant, compile="graph")
    assert same(train(one, Stream(0), 30), train(other, Stream(0), 30))
    assert same(dict(one.network.state_dict()), dict(other.network.state_dict()))


@EACH
def test_metrics_are_finite_and_cover_the_updates_since_the_last_call(variant):
    agent = make(variant)
    assert agent.metrics() == {}
    train(agent, Stream(0), 20)
    metrics = agent.metrics()
    assert tuple(metrics) == agent.metric_names
    assert all(isinstance(value, float) and np.isfinite(value) for value in metrics.values())
    assert agent.metrics() == {}


@EACH
@pytest.mark.parametrize("slots", [1, 3, 8])
def test_agents_train_in_any_number_of_slots(variant, slots):
    agent, stream = make(variant, num_slots=slots), Stream(0, slots)
    for actions in train(agent, stream, 3 * SLOTS * 8 // slots):
        assert len(actions) == slots
    assert agent.updates > 0
    assert np.isfinite(agent.evaluate(STATES)).all()
