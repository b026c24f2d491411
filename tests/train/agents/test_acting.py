"""The actions of agents, for one state and for batches."""

import warnings

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train import AgentSpaces, make_agent
from tests.train.agents.making import NUMBERS, SIZE, SLOTS, VARIANTS, Stream, boxes, make, train

EACH = pytest.mark.parametrize("variant", VARIANTS)


def states(count, seed=0):
    return np.random.default_rng(seed).normal(0, 2, (count, SIZE)).astype(np.float32)


@EACH
def test_act_batch_equals_act_on_each_row(variant):
    agent = make(variant)
    train(agent, Stream(3), 20)
    for count in (1, 2, 7, 33, 128):
        batch = states(count)
        together = agent.act_batch(batch, deterministic=True)
        separately = [agent.act(state, deterministic=True) for state in batch]
        assert len(together) == count
        np.testing.assert_allclose(together, separately, rtol=1e-5, atol=1e-6)
        expected = [agent.evaluate(state[None])[0] for state in batch]
        np.testing.assert_allclose(agent.evaluate(batch), expected, rtol=1e-5, atol=1e-6)


@EACH
def test_an_empty_batch_returns_no_actions(variant):
    agent = make(variant)
    assert len(agent.act_batch(np.zeros((0, SIZE)))) == 0
    assert agent.evaluate(np.zeros((0, SIZE))).shape == (0,)


@EACH
def test_act_returns_an_int_for_discrete_actions_and_an_array_for_continuous_ones(variant):
    agent = make(variant)
    for deterministic in (True, False):
        action = agent.act([0.0, 1.0, 2.0], deterministic=deterministic)
        if agent.spaces is NUMBERS and not hasattr(agent, "epsilon"):
            assert action.dtype == np.float32
            assert action.shape == (2,)
        else:
            assert type(action) is int


@EACH
def test_deterministic_actions_use_no_random_numbers(variant):
    agent, observations = make(variant), states(9)
    before = agent.generator.get_state()
    first = agent.act_batch(observations, deterministic=True)
    assert np.array_equal(first, agent.act_batch(observations, deterministic=True))
    assert torch.equal(before, agent.generator.get_state())


@EACH
def test_exploring_actions_are_sampled_in_each_call(variant):
    agent, observations = make(variant), states(64)
    assert not np.array_equal(agent.act_batch(observations), agent.act_batch(observations))


@EACH
def test_states_of_the_wrong_shape_raise(variant):
    agent = make(variant)
    for shape in [(SIZE,), (2, SIZE + 1), (2, SIZE - 1), (2, 1), (), (1, 2, SIZE), (0,)]:
        message = rf"\(rows, {SIZE}\), got \({', '.join(map(str, shape))}"
        for method in (agent.act_batch, agent.evaluate, agent.act_in_environment):
            with pytest.raises(ValueError, match=message):
                method(np.zeros(shape))
        if shape != (SIZE,):
            with pytest.raises(ValueError, match=rf"\(rows, {SIZE}\)"):
                agent.act(np.zeros(shape))


@pytest.mark.parametrize("variant", ["DDDQN", "SAC", "PPO discrete"])
@pytest.mark.parametrize("shape", [(1, SIZE), (SLOTS + 1, SIZE), (SLOTS, 1), (SIZE,)])
def test_explore_requires_one_state_per_slot(variant, shape):
    """A wrong number of rows raises instead of being broadcast."""
    with pytest.raises((ValueError, RuntimeError)):
        make(variant).explore(np.zeros(shape, np.float32))


@pytest.mark.parametrize("variant", ["DDDQN", "SAC", "PPO discrete"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.uint8, bool])
def test_states_may_have_any_dtype_and_layout(variant, dtype):
    agent = make(variant)
    observations = (states(6) * 3).astype(dtype)
    expected = agent.act_batch(observations.astype(np.float32), deterministic=True)
    assert np.array_equal(agent.act_batch(observations, deterministic=True), expected)
    assert np.array_equal(agent.act_batch(observations.tolist(), deterministic=True), expected)
    strided = np.zeros((12, 2 * SIZE), dtype)[::2, ::2]
    strided[:] = observations
    assert np.array_equal(agent.act_batch(strided, deterministic=True), expected)
    fortran = np.asfortranarray(observations)
    assert np.array_equal(agent.act_batch(fortran, deterministic=True), expected)


def test_read_only_states_are_accepted_without_a_warning():
    observations = states(4)
    observations.setflags(write=False)
    before = torch.is_warn_always_enabled()  # otherwise torch warns once per process
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make("DDDQN").act_batch(observations)
    finally:
        torch.set_warn_always(before)


@EACH
def test_acting_does_not_modify_the_states(variant):
    agent, observations = make(variant), states(5)
    before = observations.copy()
    agent.act_batch(observations)
    agent.explore(observations[:SLOTS])
    assert np.array_equal(before, observations)


@EACH
def test_returned_actions_are_not_overwritten_later(variant):
    agent = make(variant)
    first = agent.explore(states(SLOTS, 1))
    before = first.copy()
    agent.remember(Stream(0).step(first))
    agent.explore(states(SLOTS, 2))
    assert np.array_equal(first, before)


@EACH
def test_a_step_may_be_overwritten_after_remember(variant):
    """Vectors with ``copy=False`` reuse their arrays."""
    one, other = make(variant, seed=4), make(variant, seed=4)
    for number in range(20):
        stream = Stream(number)
        for agent, overwrites in ((one, False), (other, True)):
            if agent.is_on_policy:
                agent.learn(0)
            observations = stream.observations.copy()
            actions = agent.explore(observations)
            step = stream.copy().step(actions)._replace(observations=observations)
            agent.remember(step)
            if overwrites:
                for column in step:
                    column[...] = 1 if column.dtype == bool else column + 7
            if not agent.is_on_policy:
                agent.learn(1)
    assert np.array_equal(one.evaluate(states(5)), other.evaluate(states(5)))


@settings(max_examples=60, deadline=None)
@given(boxes(), st.integers(1, 9), st.sampled_from(["SAC", "PPO"]))
def test_random_continuous_actions_are_within_the_bounds(box, slots, kind):
    agent = make_agent(
        kind, AgentSpaces(1, box), {"hidden_dim": [2]} | SMALLEST[kind], num_slots=slots
    )
    for _ in range(5):
        actions = agent.random_actions()
        assert actions.shape == (slots, *box.shape)
        assert actions.dtype == np.float32
        converted = agent.actions.to_environment(actions)
        assert all(box.contains(action) for action in converted)
        width = np.maximum(np.spacing(np.abs(box.high)), np.spacing(np.abs(box.low)))
        assert (actions <= box.high + width).all()
        assert (actions >= box.low - width).all()


SMALLEST = {
    "SAC": {"buffer_size": 2},
    "PPO": {"rollout_steps": 1, "log_std": 2.0},
    "DDDQN": {"buffer_size": 2},
}


@settings(max_examples=40, deadline=None)
@given(boxes(), st.sampled_from(["SAC", "PPO"]), st.booleans())
def test_act_in_environment_returns_valid_actions(box, kind, deterministic):
    agent = make_agent(kind, AgentSpaces(1, box), {"hidden_dim": [2]} | SMALLEST[kind])
    with torch.no_grad():
        for parameter in agent.network.actor.parameters():
            parameter.mul_(30.0)
    for action in agent.act_in_environment(np.linspace(-40, 40, 64)[:, None], deterministic):
        assert box.contains(action)


@pytest.mark.parametrize("kind", ["SAC", "PPO"])
def test_act_and_act_batch_return_actions_within_the_bounds(kind):
    """Callers of the public methods need not clip actions."""
    box = spaces.Box(-1.0, 1.0, (2,))
    agent = make_agent(kind, AgentSpaces(SIZE, box), {"hidden_dim": [4]} | SMALLEST[kind])
    for deterministic in (True, False):
        assert all(box.contains(a) for a in agent.act_batch(states(200), deterministic))
        assert box.contains(agent.act(states(1)[0], deterministic))


@pytest.mark.parametrize("slots", [1, 3, 8])
@pytest.mark.parametrize("kind", ["DDDQN", "PPO"])
def test_random_discrete_actions_are_uniform(kind, slots):
    agent = make_agent(
        kind,
        AgentSpaces(1, spaces.Discrete(5, start=-2)),
        {"hidden_dim": [2]} | SMALLEST[kind],
        num_slots=slots,
    )
    actions = np.concatenate([agent.random_actions() for _ in range(4000 // slots)])
    assert agent.random_actions().shape == (slots,)
    counts = np.bincount(actions, minlength=5)
    assert len(counts) == 5
    assert np.abs(counts / len(actions) - 0.2).max() < 0.04
    assert set(agent.actions.to_environment(actions).tolist()) == {-2, -1, 0, 1, 2}


def test_random_continuous_actions_are_uniform():
    agent = make("SAC")
    actions = np.concatenate([agent.random_actions() for _ in range(1000)])
    shares = (actions - NUMBERS.action_space.low) / (NUMBERS.action_space.high - [-2, 0])
    for column in shares.T:
        assert np.abs(np.histogram(column, 4, (0, 1))[0] / len(column) - 0.25).max() < 0.04


def test_slots_explore_independently():
    for variant in VARIANTS:
        agent = make(variant, num_slots=32)
        assert len(np.unique(agent.explore(np.zeros((32, SIZE), np.float32)), axis=0)) > 2


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_epsilon_is_the_probability_of_a_random_action(epsilon):
    agent = make("DDDQN", epsilon_start=epsilon, epsilon_final=epsilon)
    observations = states(8000)
    best = agent.act_batch(observations, deterministic=True)
    differing = np.mean(agent.act_batch(observations) != best)
    assert differing == pytest.approx(epsilon * 3 / 4, abs=0.02)


@pytest.mark.parametrize(
    ("steps", "expected"), [(0, 1.0), (250, 0.8), (500, 0.6), (1000, 0.2), (5000, 0.2)]
)
def test_epsilon_is_annealed_over_the_steps(steps, expected):
    agent = make("DDDQN", epsilon_start=1.0, epsilon_final=0.2, epsilon_steps=1000)
    assert agent.epsilon == 1.0
    agent.progressed(steps, 0.5)
    assert agent.epsilon == pytest.approx(expected)


def test_epsilon_is_final_at_once_if_epsilon_steps_is_zero():
    agent = make("DDDQN", epsilon_start=1.0, epsilon_final=0.2, epsilon_steps=0)
    agent.progressed(1, 0.0)
    assert agent.epsilon == pytest.approx(0.2)
