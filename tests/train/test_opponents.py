"""Opponents: random selection by phase, and batched actions."""

import warnings
from collections import Counter

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train import make_agent
from shoal.train._config.schema import OpponentConfig
from shoal.train._files import read_file, write_file
from shoal.train._opponents import NO_OPPONENT, SELF, Opponent, OpponentDraw, Opponents
from shoal.train._tasks.hockey_task import hockey_spaces

SIZE = 18
SMALL = {
    "DDDQN": {"hidden_dim": [4], "buffer_size": 2},
    "SAC": {"hidden_dim": [4], "buffer_size": 2},
    "PPO": {"hidden_dim": [4], "rollout_steps": 2},
}


def agent(kind="SAC", seed=0):
    return make_agent(kind, hockey_spaces(), SMALL[kind], seed=seed)


class FakeAgent:
    """An agent whose actions depend on the first observed number, and that records its calls."""

    def __init__(self, name="self"):
        self.name = name
        self.calls = []
        self.generator = object()

    def act_in_environment(self, states, deterministic=True):
        self.calls.append((len(states), deterministic))
        sign = np.where(deterministic, 1.0, -1.0).reshape(-1, 1)
        return sign * states[:, :1] + np.arange(4)


def fake_opponents():
    """Return opponents, the live agent and the list of loaded agents."""
    loaded = []

    def load(name):
        loaded.append(FakeAgent(name))
        return loaded[-1]

    live = FakeAgent()
    return Opponents(live, load), live, loaded


def random_observations(slots):
    return np.random.default_rng(0).normal(size=(slots, SIZE)).astype(np.float32)


names = st.sampled_from(
    [NO_OPPONENT, "weak", "strong", SELF, "one.agent", "two.agent", "three.agent"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(names, st.booleans()), min_size=1, max_size=30))
def test_batched_actions_equal_individual_actions(slots):
    opponents, live, loaded = fake_opponents()
    numbers = np.array([opponents.number(name, deterministic) for name, deterministic in slots])
    observations, out = random_observations(len(slots)), np.full((len(slots), 4), 99.0, np.float32)
    opponents.act(numbers, observations, out)
    for (name, deterministic), observation, action in zip(slots, observations, out, strict=True):
        if name in ("weak", "strong"):
            assert action.tolist() == [99.0] * 4  # unchanged: the environment moves them
        elif name == NO_OPPONENT:
            assert action.tolist() == [0.0] * 4
        else:
            sign = 1.0 if deterministic else -1.0
            np.testing.assert_allclose(action, sign * observation[0] + np.arange(4), rtol=1e-6)
    networks = {name for name, _ in slots} - {NO_OPPONENT, "weak", "strong"}
    assert {player.name for player in [live, *loaded] if player.calls} == networks
    rows = sum(count for player in [live, *loaded] for count, _ in player.calls)
    assert rows == sum(name in networks for name, _ in slots)


@pytest.mark.parametrize("kind", SMALL)
def test_one_forward_pass_per_network(kind):
    """For any number of slots."""
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a", "b"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    passes = Counter()
    for name, each in agents.items():
        first = next(m for m in each.network.modules() if isinstance(m, torch.nn.Linear))
        first.register_forward_hook(lambda *_, name=name: passes.update([name]))
    drawn = [(SELF, True), ("a", True), ("b", False), (NO_OPPONENT, True), ("weak", True)] * 5
    numbers = np.array([opponents.number(*each) for each in drawn])
    opponents.act(numbers, random_observations(25), np.zeros((25, 4), np.float32))
    assert passes == {SELF: 1, "a": 1, "b": 1}
    passes.clear()
    opponents.act(
        np.full(25, opponents.number("a")), random_observations(25), np.zeros((25, 4), np.float32)
    )
    assert passes == {"a": 1}


@pytest.mark.parametrize("kind", SMALL)
def test_one_forward_pass_if_only_some_slots_are_deterministic(kind):
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    passes = Counter()
    for name, each in agents.items():
        first = next(m for m in each.network.modules() if isinstance(m, torch.nn.Linear))
        first.register_forward_hook(lambda *_, name=name: passes.update([name]))
    drawn = [(SELF, True), (SELF, False), ("a", True), ("a", False)] * 3
    numbers = np.array([opponents.number(*each) for each in drawn])
    opponents.act(numbers, random_observations(12), np.zeros((12, 4), np.float32))
    assert passes == {SELF: 1, "a": 1}


@pytest.mark.parametrize("kind", SMALL)
def test_batched_actions_of_agents_equal_individual_actions(kind):
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a", "b"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    drawn = [("b", True), (SELF, True), ("a", True), (NO_OPPONENT, True), ("b", True), (SELF, True)]
    numbers = np.array([opponents.number(*each) for each in drawn])
    observations, both = random_observations(6), np.full((6, 8), 7.0, np.float32)
    opponents.act(numbers, observations, both[:, 4:])  # a view of the actions of both players
    for (name, _), observation, action in zip(drawn, observations, both, strict=True):
        assert action[:4].tolist() == [7.0] * 4
        if name == NO_OPPONENT:
            assert action[4:].tolist() == [0.0] * 4
        else:
            expected = agents[name].act_in_environment(observation[None])[0]
            np.testing.assert_allclose(action[4:], expected, atol=1e-6)
            assert (np.abs(action[4:]) <= 1.0).all()


def test_opponents_use_the_live_agents_generator():
    live, other = agent(seed=1), agent(seed=2)
    opponents = Opponents(live, lambda _: other)
    number = opponents.number("other", deterministic=False)
    state, out = live.generator.get_state(), np.zeros((3, 4), np.float32)
    opponents.act(np.full(3, number), random_observations(3), out)
    assert not torch.equal(state, live.generator.get_state())
    live.generator.set_state(state)
    again = np.zeros((3, 4), np.float32)
    opponents.act(np.full(3, number), random_observations(3), again)
    assert np.array_equal(out, again)


def test_each_opponent_is_loaded_once():
    opponents, live, loaded = fake_opponents()
    first = [opponents.number(name) for name in ("a", SELF, "weak", "b", NO_OPPONENT)]
    assert len(set(first)) == 5
    assert [opponents.number(name) for name in ("a", SELF, "weak", "b", NO_OPPONENT)] == first
    assert [player.name for player in loaded] == ["a", "b"]
    assert opponents[first[1]].agent is live
    assert [opponents[number].name for number in first] == ["a", SELF, "weak", "b", NO_OPPONENT]
    assert [opponents[number].scripted for number in first] == [None, None, "weak", None, None]


def test_deterministic_and_stochastic_opponents_share_one_agent():
    opponents, _, loaded = fake_opponents()
    assert opponents.number("a", True) != opponents.number("a", False)
    assert len(loaded) == 1


def test_scripted_players_have_one_number():
    opponents, _, _ = fake_opponents()
    for name in ("weak", "strong", NO_OPPONENT):
        assert opponents.number(name, True) == opponents.number(name, False)


# Permanent numbers


def test_playing_opponent_is_not_released():
    opponents, _, _ = fake_opponents()
    one, other = opponents.number("a", True), opponents.number("a", False)
    for playing in ([one], [other], [0, other, 0]):
        assert not opponents.forget("a", np.array(playing))
        assert opponents[one].agent is not None
    assert opponents.forget("a", np.array([0, 0]))
    assert opponents[one].agent is None
    assert opponents[other].agent is None


def test_released_opponent_is_loaded_again_with_a_new_number():
    opponents, _, loaded = fake_opponents()
    before, kept = opponents.number("a"), opponents.number("b")
    opponents.forget("a", np.array([0]))
    after = opponents.number("a")
    assert after not in (before, kept)
    assert opponents.number("b") == kept
    assert [player.name for player in loaded] == ["a", "b", "a"]
    assert opponents.forget("never loaded", np.array([0]))


events = st.lists(st.tuples(st.sampled_from(["load", "forget"]), names, st.booleans()), max_size=25)


@settings(max_examples=100, deadline=None)
@given(events, events)
def test_numbers_are_restored(before, after):
    """Opponents keep their numbers, and new opponents get the same numbers."""
    one, _, _ = fake_opponents()
    for kind, name, deterministic in before:
        if kind == "load":
            one.number(name, deterministic)
        elif name not in (NO_OPPONENT, SELF, "weak", "strong"):
            one.forget(name, np.array([0]))
    plain = msgspec.json.decode(msgspec.json.encode(one.state()))
    other, live, _ = fake_opponents()
    other.number("unrelated")
    other.restore(plain)
    assert other.state() == one.state()
    for kind, name, deterministic in after:
        if kind == "load":
            number = one.number(name, deterministic)
            assert other.number(name, deterministic) == number
            assert other[number].name == one[number].name == name
            assert other[number].deterministic == one[number].deterministic
            assert (other[number].agent is None) == (one[number].agent is None)
            if name == SELF:
                assert other[number].agent is live
        elif name not in (NO_OPPONENT, SELF, "weak", "strong"):
            assert one.forget(name, np.array([0])) == other.forget(name, np.array([0]))
    assert other.state() == one.state()


def test_restore_does_not_load_released_opponents(tmp_path):
    """The file of a dropped member may no longer exist."""
    one, _, _ = fake_opponents()
    one.number("dropped"), one.number("kept")
    one.forget("dropped", np.array([0]))
    write_file(tmp_path / "some", {"opponents": one.state()})
    other, _, loaded = fake_opponents()
    other.restore(read_file(tmp_path / "some")["opponents"])
    assert [player.name for player in loaded] == ["kept"]


def test_scripted_name():
    assert Opponent("weak").scripted == "weak"
    assert Opponent(NO_OPPONENT).scripted is None
    assert Opponent("some.agent").scripted is None


# Random selection


def frequencies(config, count=4000, league="member 3"):
    raw = msgspec.convert(config, OpponentConfig)
    draw, rng = OpponentDraw(raw, lambda _: league), np.random.default_rng(0)
    counts = Counter(draw.draw(rng) for _ in range(count))
    return {opponent: times / count for opponent, times in counts.items()}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (NO_OPPONENT, True)),
        ({"type": "none"}, (NO_OPPONENT, True)),
        ({"type": "basic_weak"}, ("weak", True)),
        ({"type": "basic_strong"}, ("strong", True)),
        ({"type": "self_play"}, (SELF, True)),
        ({"type": "self_play", "checkpoint": "latest"}, (SELF, True)),
        ({"type": "self_play", "deterministic": False}, (SELF, False)),
        ({"type": "self_play", "checkpoint": "runs/one/best.agent"}, ("runs/one/best.agent", True)),
        ({"type": "league", "deterministic": False}, ("member 3", False)),
    ],
)
def test_each_opponent_type(config, expected):
    assert frequencies(config, 20) == {expected: 1.0}


def test_mixture_frequencies_match_weights():
    actual = frequencies(
        {
            "type": "weighted_mixture",
            "opponents": [
                {"type": "basic_weak", "weight": 5},
                {"type": "self_play", "weight": 3, "deterministic": False},
                {"type": "basic_strong", "weight": 0},
                {"type": "league", "weight": 2},
            ],
        }
    )
    expected = {("weak", True): 0.5, (SELF, False): 0.3, ("member 3", True): 0.2}
    assert actual == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("kind", ["none", "basic_weak", "self_play", "league"])
def test_weight_outside_of_a_mixture_is_ignored(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = frequencies({"type": kind}, 9)
        other = frequencies({"type": kind, "weight": 0.0}, 9)
    assert one == other
