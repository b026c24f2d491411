"""Conversion between the actions of agents and those of environments."""

from itertools import product

import msgspec
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.hockey import HockeyEnv
from shoal.train import AgentSpaces, load_agent, make_agent
from shoal.train._tasks.hockey_task import CHOICES, hockey_spaces
from tests.train.agents.making import Stream, boxes, train


@settings(max_examples=80, deadline=None)
@given(boxes(), st.integers(2, 5), st.data())
def test_a_grid_contains_every_combination_once(box, fineness, data):
    size = box.shape[0]
    switches = tuple(data.draw(st.sets(st.integers(0, size - 1))))
    choices = AgentSpaces(2, box, switches=switches).choices(fineness)
    axes = [
        np.linspace(box.low[k], box.high[k], 2 if k in switches else fineness) for k in range(size)
    ]
    expected = np.array(list(product(*axes)), np.float32)
    assert choices.count == fineness ** (size - len(switches)) * 2 ** len(switches)
    actions = choices.to_environment(np.arange(choices.count))
    assert actions.dtype == np.float32
    assert np.array_equal(np.sort(actions, axis=0), np.sort(expected, axis=0))
    assert all(box.contains(action) for action in actions)
    assert np.array_equal(np.unique(actions, axis=0), np.unique(expected, axis=0))


def test_a_grid_for_hockey_has_two_values_for_the_shot():
    choices = hockey_spaces().choices(3)
    assert choices.count == 3 * 3 * 3 * 2
    actions = choices.to_environment(np.arange(54))
    assert sorted(set(actions[:, 3].tolist())) == [-1.0, 1.0]
    assert [sorted(set(column.tolist())) for column in actions.T[:3]] == [[-1.0, 0.0, 1.0]] * 3


def test_the_discrete_actions_of_hockey_are_those_of_its_environment():
    env = HockeyEnv()
    choices = hockey_spaces().choices()
    assert choices.count == 8 == env.discrete_action_space.n
    for choice in range(8):
        expected = env.discrete_to_continous_action(choice)
        assert choices.to_environment(np.array([choice]))[0].tolist() == list(expected)
    assert CHOICES.sum(0).tolist() == [0, 0, 0, 1]


def test_discrete_actions_respect_the_start_of_the_space():
    choices = AgentSpaces(1, spaces.Discrete(3, start=-4)).choices()
    assert choices.to_environment(np.array([0, 2, 1])).tolist() == [-4, -2, -3]


@settings(max_examples=50, deadline=None)
@given(boxes())
def test_continuous_actions_are_clipped_to_the_bounds(box):
    numbers = AgentSpaces(1, box).numbers()
    assert numbers.size == box.shape[0]
    out_of_bounds = np.array([box.low - 1e7, box.high + 1e7, (box.low + box.high) / 2], np.float32)
    actions = numbers.to_environment(out_of_bounds)
    assert all(box.contains(action) for action in actions)
    assert np.array_equal(actions[:2], [box.low, box.high])


agent_spaces = st.builds(
    AgentSpaces,
    st.integers(1, 5),
    st.one_of(boxes(), st.builds(spaces.Discrete, st.integers(1, 9), start=st.integers(-5, 5))),
    observation_scale=st.none() | st.floats(0.125, 8, width=32),
    table=st.none() | st.just([[0.5, 1.0], [0.0, 0.25]]),
    switches=st.sampled_from([(), (0,)]),
)


@settings(max_examples=80, deadline=None)
@given(agent_spaces)
def test_spaces_survive_a_round_trip_through_json(before):
    data = msgspec.json.decode(msgspec.json.encode(before.state()))
    after = AgentSpaces.from_state(data)
    assert after.action_space == before.action_space
    assert after.state() == before.state()
    assert np.array_equal(after.observation_scale, before.observation_scale)
    assert after.observation_scale.shape == (before.observation_size,)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, ()),
        spaces.MultiDiscrete([2, 2]),
        spaces.MultiBinary(3),
        spaces.Dict(a=spaces.Discrete(2)),
        spaces.Tuple([spaces.Discrete(2)]),
        spaces.Text(3),
    ],
)
def test_unsupported_action_spaces_raise(space):
    with pytest.raises(ValueError, match="agents take Discrete actions, or Box actions of one dim"):
        AgentSpaces(3, space)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (0, np.inf), ([0, -np.inf], [1, 1])])
def test_unbounded_actions_raise(low, high):
    shape = np.broadcast_shapes(np.shape(low), np.shape(high)) or (1,)
    box = spaces.Box(
        np.broadcast_to(np.float32(low), shape), np.broadcast_to(np.float32(high), shape)
    )
    with pytest.raises(ValueError, match="Box actions must have finite bounds"):
        AgentSpaces(3, box)


def test_observation_scale_must_fit_the_observation_size():
    with pytest.raises(ValueError, match="broadcast"):
        AgentSpaces(3, spaces.Discrete(2), observation_scale=[1.0, 2.0])


def test_agents_raise_for_action_spaces_they_do_not_support():
    box, discrete = AgentSpaces(1, spaces.Box(-1, 1, (2,))), AgentSpaces(1, spaces.Discrete(2))
    with pytest.raises(ValueError, match="set action_fineness to"):
        make_agent("DDDQN", box)
    with pytest.raises(ValueError, match="action_fineness is for continuous actions"):
        make_agent("DDDQN", discrete, {"action_fineness": 3})
    with pytest.raises(ValueError, match="expected continuous actions"):
        make_agent("SAC", discrete)
    assert make_agent("DDDQN", box, {"action_fineness": 3, "buffer_size": 1}).actions.count == 9


@pytest.mark.parametrize("kind", ["SAC", "PPO"])
def test_an_action_element_without_a_range_raises_or_causes_no_nan(kind):
    """The bounds of the second element are equal."""
    box = spaces.Box(np.array([-1, 2], np.float32), np.array([1, 2], np.float32))
    settings = {"hidden_dim": [4]} | (
        {"rollout_steps": 2} if kind == "PPO" else {"buffer_size": 9, "batch_size": 4}
    )
    try:
        agent = make_agent(kind, AgentSpaces(1, box), settings, num_slots=2)
    except ValueError:
        return  # an error is fine, too
    train(agent, Stream(0, slots=2, size=1), 8)
    assert np.isfinite(agent.evaluate(np.ones((3, 1)))).all()
    assert np.isfinite(agent.act_batch(np.ones((3, 1)))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("agent", ["DDDQN", "SAC", "PPO"])
def test_actions_have_the_dtype_of_the_space_and_are_within_its_bounds(tmp_path, agent, dtype):
    """One third differs between float32 and float64: rounded, it would be out of bounds."""
    third = dtype(1) / dtype(3)
    box = spaces.Box(np.array([-third, 0], dtype), np.array([third, 0.1], dtype), dtype=dtype)
    small = {"hidden_dim": [4]} | ({} if agent == "PPO" else {"buffer_size": 9})
    more = {"action_fineness": 4} if agent == "DDDQN" else {}
    made = make_agent(agent, AgentSpaces(1, box), small | more, num_slots=50)
    made.save(tmp_path / "some.agent")
    for each in (made, load_agent(tmp_path / "some.agent")):
        actions = each.random_actions() if each is made else each.act_batch(np.ones((50, 1)))
        if agent != "DDDQN":
            actions = np.sign(actions) * 9  # out of bounds
        converted = each.actions.to_environment(actions)
        assert converted.dtype == dtype
        assert all(box.contains(action) for action in converted)
        assert each.spaces.action_space == box
