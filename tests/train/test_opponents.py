"""Opponents: drawn as a phase says, and asked all at once."""

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
from shoal.train._opponents import NOBODY, SELF, Opponent, OpponentDraw, Opponents
from shoal.train._tasks.hockey_task import hockey_spaces

SIZE = 18
SMALL = {
    "DDDQN": {"hidden_dim": [4], "buffer_size": 2},
    "SAC": {"hidden_dim": [4], "buffer_size": 2},
    "PPO": {"hidden_dim": [4], "rollout_steps": 2},
}


def agent(kind="SAC", seed=0):
    return make_agent(kind, hockey_spaces(), SMALL[kind], seed=seed)


class Player:
    """Stands in for an agent: does what is seen first, and notes what it was asked."""

    def __init__(self, name="self"):
        self.name = name
        self.asked = []
        self.generator = object()

    def act_in_environment(self, states, deterministic=True):
        self.asked.append((len(states), deterministic))
        sign = np.where(deterministic, 1.0, -1.0).reshape(-1, 1)
        return sign * states[:, :1] + np.arange(4)


def players():
    """Opponents who are noted when they are loaded."""
    loaded = []

    def load(name):
        loaded.append(Player(name))
        return loaded[-1]

    live = Player()
    return Opponents(live, load), live, loaded


def seen(slots):
    return np.random.default_rng(0).normal(size=(slots, SIZE)).astype(np.float32)


names = st.sampled_from([NOBODY, "weak", "strong", SELF, "one.agent", "two.agent", "three.agent"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(names, st.booleans()), min_size=1, max_size=30))
def test_everybody_does_what_he_would_do_alone(slots):
    opponents, live, loaded = players()
    numbers = np.array([opponents.number(name, deterministic) for name, deterministic in slots])
    observations, out = seen(len(slots)), np.full((len(slots), 4), 99.0, np.float32)
    opponents.act(numbers, observations, out)
    for (name, deterministic), saw, did in zip(slots, observations, out, strict=True):
        if name in ("weak", "strong"):
            assert did.tolist() == [99.0] * 4  # the environment moves them
        elif name == NOBODY:
            assert did.tolist() == [0.0] * 4
        else:
            sign = 1.0 if deterministic else -1.0
            np.testing.assert_allclose(did, sign * saw[0] + np.arange(4), rtol=1e-6)
    networks = {name for name, _ in slots} - {NOBODY, "weak", "strong"}
    assert {player.name for player in [live, *loaded] if player.asked} == networks
    asked = sum(count for player in [live, *loaded] for count, _ in player.asked)
    assert asked == sum(name in networks for name, _ in slots)


@pytest.mark.parametrize("kind", SMALL)
def test_there_is_one_pass_through_each_network(kind):
    """However many slots it plays in, and whether or not it explores there."""
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a", "b"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    passes = Counter()
    for name, each in agents.items():
        first = next(m for m in each.network.modules() if isinstance(m, torch.nn.Linear))
        first.register_forward_hook(lambda *_, name=name: passes.update([name]))
    drawn = [(SELF, True), ("a", True), ("b", False), (NOBODY, True), ("weak", True)] * 5
    numbers = np.array([opponents.number(*each) for each in drawn])
    opponents.act(numbers, seen(25), np.zeros((25, 4), np.float32))
    assert passes == {SELF: 1, "a": 1, "b": 1}
    passes.clear()
    opponents.act(np.full(25, opponents.number("a")), seen(25), np.zeros((25, 4), np.float32))
    assert passes == {"a": 1}


@pytest.mark.parametrize("kind", SMALL)
def test_one_network_that_explores_in_some_slots_only_is_still_one_pass(kind):
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    passes = Counter()
    for name, each in agents.items():
        first = next(m for m in each.network.modules() if isinstance(m, torch.nn.Linear))
        first.register_forward_hook(lambda *_, name=name: passes.update([name]))
    drawn = [(SELF, True), (SELF, False), ("a", True), ("a", False)] * 3
    numbers = np.array([opponents.number(*each) for each in drawn])
    opponents.act(numbers, seen(12), np.zeros((12, 4), np.float32))
    assert passes == {SELF: 1, "a": 1}


@pytest.mark.parametrize("kind", SMALL)
def test_real_agents_act_as_they_would_by_themselves(kind):
    agents = {name: agent(kind, seed) for seed, name in enumerate([SELF, "a", "b"])}
    opponents = Opponents(agents[SELF], agents.__getitem__)
    drawn = [("b", True), (SELF, True), ("a", True), (NOBODY, True), ("b", True), (SELF, True)]
    numbers = np.array([opponents.number(*each) for each in drawn])
    observations, both = seen(6), np.full((6, 8), 7.0, np.float32)
    opponents.act(numbers, observations, both[:, 4:])  # a part of the actions of both players
    for (name, _), saw, did in zip(drawn, observations, both, strict=True):
        assert did[:4].tolist() == [7.0] * 4
        if name == NOBODY:
            assert did[4:].tolist() == [0.0] * 4
        else:
            expected = agents[name].act_in_environment(saw[None])[0]
            np.testing.assert_allclose(did[4:], expected, atol=1e-6)
            assert (np.abs(did[4:]) <= 1.0).all()


def test_opponents_draw_from_the_generator_that_is_saved():
    live, other = agent(seed=1), agent(seed=2)
    opponents = Opponents(live, lambda _: other)
    number = opponents.number("other", deterministic=False)
    state, out = live.generator.get_state(), np.zeros((3, 4), np.float32)
    opponents.act(np.full(3, number), seen(3), out)
    assert not torch.equal(state, live.generator.get_state())
    live.generator.set_state(state)
    again = np.zeros((3, 4), np.float32)
    opponents.act(np.full(3, number), seen(3), again)
    assert np.array_equal(out, again)


def test_everybody_is_met_and_loaded_once():
    opponents, live, loaded = players()
    first = [opponents.number(name) for name in ("a", SELF, "weak", "b", NOBODY)]
    assert len(set(first)) == 5
    assert [opponents.number(name) for name in ("a", SELF, "weak", "b", NOBODY)] == first
    assert [player.name for player in loaded] == ["a", "b"]
    assert opponents[first[1]].agent is live
    assert [opponents[number].name for number in first] == ["a", SELF, "weak", "b", NOBODY]
    assert [opponents[number].scripted for number in first] == [None, None, "weak", None, None]


def test_an_agent_that_explores_is_loaded_once_too():
    opponents, _, loaded = players()
    assert opponents.number("a", True) != opponents.number("a", False)
    assert len(loaded) == 1


def test_scripted_players_have_one_number_however_they_are_asked_for():
    opponents, _, _ = players()
    for name in ("weak", "strong", NOBODY):
        assert opponents.number(name, True) == opponents.number(name, False)


# Numbers stay the same


def test_who_plays_is_not_forgotten():
    opponents, _, _ = players()
    one, other = opponents.number("a", True), opponents.number("a", False)
    for playing in ([one], [other], [0, other, 0]):
        assert not opponents.forget("a", np.array(playing))
        assert opponents[one].agent is not None
    assert opponents.forget("a", np.array([0, 0]))
    assert opponents[one].agent is None
    assert opponents[other].agent is None


def test_who_was_forgotten_is_loaded_anew_under_another_number():
    opponents, _, loaded = players()
    before, kept = opponents.number("a"), opponents.number("b")
    opponents.forget("a", np.array([0]))
    after = opponents.number("a")
    assert after not in (before, kept)
    assert opponents.number("b") == kept
    assert [player.name for player in loaded] == ["a", "b", "a"]
    assert opponents.forget("nobody has met me", np.array([0]))


events = st.lists(st.tuples(st.sampled_from(["meet", "forget"]), names, st.booleans()), max_size=25)


@settings(max_examples=100, deadline=None)
@given(events, events)
def test_numbers_are_restored(before, after):
    """Whoever was met has the number that slots know him by, and so will those who come."""
    one, _, _ = players()
    for kind, name, deterministic in before:
        if kind == "meet":
            one.number(name, deterministic)
        elif name not in (NOBODY, SELF, "weak", "strong"):
            one.forget(name, np.array([0]))
    plain = msgspec.json.decode(msgspec.json.encode(one.state()))
    other, live, _ = players()
    other.number("from another life")
    other.restore(plain)
    assert other.state() == one.state()
    for kind, name, deterministic in after:
        if kind == "meet":
            number = one.number(name, deterministic)
            assert other.number(name, deterministic) == number
            assert other[number].name == one[number].name == name
            assert other[number].deterministic == one[number].deterministic
            assert (other[number].agent is None) == (one[number].agent is None)
            if name == SELF:
                assert other[number].agent is live
        elif name not in (NOBODY, SELF, "weak", "strong"):
            assert one.forget(name, np.array([0])) == other.forget(name, np.array([0]))
    assert other.state() == one.state()


def test_who_was_forgotten_is_not_loaded_when_a_run_is_resumed(tmp_path):
    """The file of a member that was dropped may be gone."""
    one, _, _ = players()
    one.number("dropped"), one.number("kept")
    one.forget("dropped", np.array([0]))
    write_file(tmp_path / "some", {"opponents": one.state()})
    other, _, loaded = players()
    other.restore(read_file(tmp_path / "some")["opponents"])
    assert [player.name for player in loaded] == ["kept"]


def test_an_opponent_that_is_nobodys_network_has_no_agent():
    assert Opponent("weak").scripted == "weak"
    assert Opponent(NOBODY).scripted is None
    assert Opponent("some.agent").scripted is None


# Draws


def drawn(config, count=4000, league="member 3"):
    raw = msgspec.convert(config, OpponentConfig)
    draw, rng = OpponentDraw(raw, lambda _: league), np.random.default_rng(0)
    found = Counter(draw.draw(rng) for _ in range(count))
    return {who: times / count for who, times in found.items()}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (NOBODY, True)),
        ({"type": "none"}, (NOBODY, True)),
        ({"type": "basic_weak"}, ("weak", True)),
        ({"type": "basic_strong"}, ("strong", True)),
        ({"type": "self_play"}, (SELF, True)),
        ({"type": "self_play", "checkpoint": "latest"}, (SELF, True)),
        ({"type": "self_play", "deterministic": False}, (SELF, False)),
        ({"type": "self_play", "checkpoint": "runs/one/best.agent"}, ("runs/one/best.agent", True)),
        ({"type": "league", "deterministic": False}, ("member 3", False)),
    ],
)
def test_every_type_of_opponent_is_drawn(config, expected):
    assert drawn(config, 20) == {expected: 1.0}


def test_a_mixture_is_drawn_by_its_weights():
    found = drawn(
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
    assert found == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("kind", ["none", "basic_weak", "self_play", "league"])
def test_a_weight_outside_of_a_mixture_means_nothing(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = drawn({"type": kind}, 9), drawn({"type": kind, "weight": 0.0}, 9)
    assert one == other
