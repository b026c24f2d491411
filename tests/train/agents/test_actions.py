"""Actions as agents choose them, and as environments take them."""

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
from tests.train.agents.making import Stream, boxes, go_on


@settings(max_examples=80, deadline=None)
@given(boxes(), st.integers(2, 5), st.data())
def test_a_grid_has_every_combination_once(box, fineness, data):
    size = box.shape[0]
    switches = tuple(data.draw(st.sets(st.integers(0, size - 1))))
    choices = AgentSpaces(2, box, switches=switches).choices(fineness)
    axes = [
        np.linspace(box.low[k], box.high[k], 2 if k in switches else fineness) for k in range(size)
    ]
    expected = np.array(list(product(*axes)), np.float32)
    assert choices.count == fineness ** (size - len(switches)) * 2 ** len(switches)
    found = choices.to_environment(np.arange(choices.count))
    assert found.dtype == np.float32
    assert np.array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))
    assert all(box.contains(action) for action in found)
    assert np.array_equal(np.unique(found, axis=0), np.unique(expected, axis=0))


def test_a_grid_of_hockey_turns_the_shot_into_a_switch():
    choices = hockey_spaces().choices(3)
    assert choices.count == 3 * 3 * 3 * 2
    found = choices.to_environment(np.arange(54))
    assert sorted(set(found[:, 3].tolist())) == [-1.0, 1.0]
    assert [sorted(set(column.tolist())) for column in found.T[:3]] == [[-1.0, 0.0, 1.0]] * 3


def test_the_choices_of_hockey_are_those_of_its_environment():
    env = HockeyEnv()
    found = hockey_spaces().choices()
    assert found.count == 8 == env.discrete_action_space.n
    for choice in range(8):
        expected = env.discrete_to_continous_action(choice)
        assert found.to_environment(np.array([choice]))[0].tolist() == list(expected)
    assert CHOICES.sum(0).tolist() == [0, 0, 0, 1]


def test_choices_may_begin_anywhere():
    choices = AgentSpaces(1, spaces.Discrete(3, start=-4)).choices()
    assert choices.to_environment(np.array([0, 2, 1])).tolist() == [-4, -2, -3]


@settings(max_examples=50, deadline=None)
@given(boxes())
def test_numbers_are_kept_within_bounds(box):
    numbers = AgentSpaces(1, box).numbers()
    assert numbers.size == box.shape[0]
    wild = np.array([box.low - 1e7, box.high + 1e7, (box.low + box.high) / 2], np.float32)
    found = numbers.to_environment(wild)
    assert all(box.contains(action) for action in found)
    assert np.array_equal(found[:2], [box.low, box.high])


states = st.builds(
    AgentSpaces,
    st.integers(1, 5),
    st.one_of(boxes(), st.builds(spaces.Discrete, st.integers(1, 9), start=st.integers(-5, 5))),
    observation_scale=st.none() | st.floats(0.125, 8, width=32),
    table=st.none() | st.just([[0.5, 1.0], [0.0, 0.25]]),
    switches=st.sampled_from([(), (0,)]),
)


@settings(max_examples=80, deadline=None)
@given(states)
def test_spaces_go_through_plain_data(before):
    plain = msgspec.json.decode(msgspec.json.encode(before.state()))
    after = AgentSpaces.from_state(plain)
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
def test_actions_of_other_kinds_are_refused(space):
    with pytest.raises(ValueError, match="agents take Discrete actions, or Box actions of one dim"):
        AgentSpaces(3, space)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (0, np.inf), ([0, -np.inf], [1, 1])])
def test_actions_without_bounds_are_refused(low, high):
    shape = np.broadcast_shapes(np.shape(low), np.shape(high)) or (1,)
    box = spaces.Box(
        np.broadcast_to(np.float32(low), shape), np.broadcast_to(np.float32(high), shape)
    )
    with pytest.raises(ValueError, match="actions must have bounds"):
        AgentSpaces(3, box)


def test_scales_must_fit_the_observation():
    with pytest.raises(ValueError, match="broadcast"):
        AgentSpaces(3, spaces.Discrete(2), observation_scale=[1.0, 2.0])


def test_agents_say_which_actions_they_cannot_take():
    box, discrete = AgentSpaces(1, spaces.Box(-1, 1, (2,))), AgentSpaces(1, spaces.Discrete(2))
    with pytest.raises(ValueError, match="action_fineness must say"):
        make_agent("DDDQN", box)
    with pytest.raises(ValueError, match="action_fineness is for continuous actions"):
        make_agent("DDDQN", discrete, {"action_fineness": 3})
    with pytest.raises(ValueError, match="expected continuous actions"):
        make_agent("SAC", discrete)
    assert make_agent("DDDQN", box, {"action_fineness": 3, "buffer_size": 1}).actions.count == 9


@pytest.mark.parametrize("kind", ["SAC", "PPO"])
def test_a_number_that_cannot_be_chosen_spoils_nothing(kind):
    """Some environments have actions of which a number has only one value."""
    box = spaces.Box(np.array([-1, 2], np.float32), np.array([1, 2], np.float32))
    settings = {"hidden_dim": [4]} | (
        {"rollout_steps": 2} if kind == "PPO" else {"buffer_size": 9, "batch_size": 4}
    )
    try:
        agent = make_agent(kind, AgentSpaces(1, box), settings, num_slots=2)
    except ValueError:
        return  # to say so is as good
    go_on(agent, Stream(0, slots=2, size=1), 8)
    assert np.isfinite(agent.evaluate(np.ones((3, 1)))).all()
    assert np.isfinite(agent.act_batch(np.ones((3, 1)))).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("agent", ["DDDQN", "SAC", "PPO"])
def test_actions_are_of_the_type_of_the_space_and_within_it(tmp_path, agent, kind):
    """A third is not the same number in both types: rounded, it would lie outside."""
    third = kind(1) / kind(3)
    box = spaces.Box(np.array([-third, 0], kind), np.array([third, 0.1], kind), dtype=kind)
    small = {"hidden_dim": [4]} | ({} if agent == "PPO" else {"buffer_size": 9})
    more = {"action_fineness": 4} if agent == "DDDQN" else {}
    made = make_agent(agent, AgentSpaces(1, box), small | more, num_slots=50)
    made.save(tmp_path / "it.agent")
    for each in (made, load_agent(tmp_path / "it.agent")):
        wild = each.random_actions() if each is made else each.act_batch(np.ones((50, 1)))
        if agent != "DDDQN":
            wild = np.sign(wild) * 9
        found = each.actions.to_environment(wild)
        assert found.dtype == kind
        assert all(box.contains(action) for action in found)
        assert each.spaces.action_space == box
