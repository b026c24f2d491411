"""Configs are checked, and an error names the path of what is wrong and what was expected."""

import copy
import json
import re

import pytest

from shoal.errors import ConfigError
from shoal.train._config import Config, load_config, parse_config

HOCKEY = "shoal/Hockey-v0"

FULL = {
    "description": "Everything that can be said.",
    "task": {"id": HOCKEY, "arguments": {}},
    "num_envs": 4,
    "seed": 3,
    "curriculum": {
        "phases": [
            {"name": "first", "steps": 1000},
            {
                "name": "second",
                "episodes": 10,
                "environment": {
                    "mixture": [
                        {"mode": "NORMAL", "weight": 1},
                        {"mode": "TRAIN_DEFENSE", "weight": 0.5},
                    ],
                    "keep_mode": False,
                },
                "opponent": {
                    "type": "weighted_mixture",
                    "opponents": [
                        {"type": "basic_weak", "weight": 0.25},
                        {
                            "type": "self_play",
                            "weight": 1,
                            "checkpoint": "some.agent",
                            "deterministic": False,
                        },
                        {"type": "league"},
                    ],
                },
                "reward_shaping": {
                    "N": 3,
                    "K": 4,
                    "CLOSENESS_START": 2.0,
                    "TOUCH_START": 1,
                    "CLOSENESS_FINAL": 1.0,
                    "TOUCH_FINAL": 0.0,
                    "DIRECTION_FINAL": 1.0,
                },
                "clear_buffer": True,
            },
        ]
    },
    "hyperparameters": {"learning_rate": 0.001},
    "training": {
        "max_episode_steps": 250,
        "warmup_steps": 100,
        "updates_per_step": 0.5,
        "train_freq": 2,
        "reward_scale": 0.1,
        "checkpoint_save_freq": 1000,
        "checkpoints_kept": 2,
        "checkpoint_replay": False,
        "eval_freq_steps": 500,
        "eval_num_games": 20,
        "eval_opponents": ["weak", "strong"],
        "video_episodes": 0,
        "stop_at_reward": 5,
    },
    "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8]}},
    "league": {
        "snapshot_every": 10,
        "size": 5,
        "scripted": ["weak"],
        "matchmaking": "even",
        "latest_share": 0.5,
        "half_life": None,
        "exploiter_share": 0.25,
        "exploiter_win_rate": 0.6,
        "exploiter_window": 20,
        "exploiter_max_episodes": 100,
    },
}

FREE = ("hyperparameters", "arguments")
"""What is inside of these is not the config's own."""


def walk(node, path=()):
    """Every named field there is, with the names and numbers that lead to it."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            if key not in FREE:
                yield from walk(value, (*path, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, (*path, number))


FIELDS = list(walk(FULL))


def said(path):
    """A path as errors write it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def at(node, path):
    for part in path:
        node = node[part]
    return node


def changed(path, value):
    raw = copy.deepcopy(FULL)
    at(raw, path[:-1])[path[-1]] = value
    return raw


def renamed(path, name):
    raw = copy.deepcopy(FULL)
    node = at(raw, path[:-1])
    fields = {name if key == path[-1] else key: value for key, value in node.items()}
    node.clear()
    node.update(fields)
    return raw


def problem(raw):
    with pytest.raises(ConfigError) as found:
        parse_config(raw)
    return str(found.value)


def test_everything_can_be_said():
    config = parse_config(FULL)
    assert isinstance(config, Config)
    second = config.curriculum.phases[1]
    assert second.opponent.opponents[1].checkpoint == "some.agent"
    assert second.environment.mixture[1].weight == 0.5
    assert config.league.half_life is None
    assert parse_config(json.loads(json.dumps(FULL))) == config


def test_most_of_it_can_be_left_out():
    config = parse_config(
        {"agent": {"type": "PPO"}, "curriculum": {"phases": [{"name": "a", "steps": 1}]}}
    )
    assert config.task.id == HOCKEY
    phase = config.curriculum.phases[0]
    assert (phase.opponent.type, phase.reward_shaping, phase.clear_buffer) == ("none", None, False)
    assert config.training.updates_per_step == 1.0
    assert config.league is None


# Names


@pytest.mark.parametrize("path", FIELDS, ids=said)
def test_a_misspelt_name_is_named_and_the_right_one_suggested(path):
    name = path[-1]
    for wrong in {name + name[-1], name[:-1] + "x" if len(name) > 3 else name * 2}:
        there = said((*path[:-1], wrong))
        assert problem(renamed(path, wrong)) == f"{there} is unknown; did you mean {said(path)}?"


@pytest.mark.parametrize(
    "path",
    [
        ("curriculum", "phases", 1, "reward_shaping", "CLOSENESS_START"),
        ("curriculum", "phases", 1, "reward_shaping", "N"),
        ("training", "warmup_steps"),
        ("agent",),
    ],
    ids=said,
)
def test_letters_of_another_size_are_a_misspelling_too(path):
    assert problem(renamed(path, path[-1].swapcase())).endswith(f"did you mean {said(path)}?")


OBJECTS = [
    path
    for path in [(), *FIELDS]
    if isinstance(at(FULL, path), dict) and not {*path[-1:]} & {*FREE}
]


@pytest.mark.parametrize("path", OBJECTS, ids=said)
def test_a_name_like_no_other_is_answered_with_all_there_are(path):
    found = problem(changed((*path, "qqqqqq"), 1))
    assert found.startswith(f"{said((*path, 'qqqqqq'))} is unknown; there are ")
    assert set(re.split(r",? ", found.partition("there are ")[2])) >= at(FULL, path).keys()


@pytest.mark.parametrize(
    "path",
    [
        ("curriculum",),
        ("agent",),
        ("agent", "type"),
        ("curriculum", "phases"),
        ("curriculum", "phases", 0, "name"),
        ("curriculum", "phases", 1, "environment", "mixture", 0, "mode"),
        ("curriculum", "phases", 1, "reward_shaping", "K"),
        ("curriculum", "phases", 1, "reward_shaping", "DIRECTION_FINAL"),
    ],
    ids=said,
)
def test_what_is_missing_is_named(path):
    raw = copy.deepcopy(FULL)
    del at(raw, path[:-1])[path[-1]]
    assert problem(raw) == f"{said(path)} is missing"


# Types and values


@pytest.mark.parametrize("path", FIELDS, ids=said)
def test_a_value_of_another_type_is_named_with_what_was_expected(path):
    wrong = 3 if isinstance(at(FULL, path), str | dict | list) else {"some": "thing"}
    found = problem(changed(path, wrong))
    assert re.match(rf"{re.escape(said(path))}: expected .*, got (int|object)$", found)


PHASE = ("curriculum", "phases", 1)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("num_envs",), 0, "expected int >= 1"),
        (("seed",), -1, "expected int >= 0"),
        (("num_envs",), 2.5, "expected int"),
        (("num_envs",), True, "expected int"),
        (("num_envs",), "4", "expected int"),
        ((*PHASE, "episodes"), 0, "expected int >= 1"),
        (("curriculum", "phases", 0, "steps"), 1.5, "expected int"),
        (("curriculum", "phases", 0, "name"), "", "expected str of length >= 1"),
        (("curriculum", "phases"), [], "expected array of length >= 1"),
        ((*PHASE, "clear_buffer"), 1, "expected bool"),
        ((*PHASE, "environment", "mixture"), [], "expected array of length >= 1"),
        ((*PHASE, "environment", "mixture", 1, "weight"), -0.5, "expected float >= 0"),
        ((*PHASE, "opponent", "opponents", 1, "weight"), -1, "expected float >= 0"),
        ((*PHASE, "opponent", "opponents", 1, "deterministic"), "no", "expected bool"),
        ((*PHASE, "opponent"), None, "expected object"),
        ((*PHASE, "reward_shaping", "N"), -1, "expected int >= 0"),
        (("training", "updates_per_step"), -1, "expected float >= 0"),
        (("training", "updates_per_step"), float("nan"), "expected float >= 0"),
        (("training", "reward_scale"), 0, "expected float > 0"),
        (("training", "train_freq"), 0, "expected int >= 1"),
        (("training", "checkpoints_kept"), 0, "expected int >= 1"),
        (("training", "eval_opponents"), [], "expected array of length >= 1"),
        (("training", "eval_opponents", 1), 3, "expected str"),
        (("league", "size"), 1, "expected int >= 2"),
        (("league", "latest_share"), 1.5, "expected float <= 1"),
    ],
    ids=lambda value: said(value) if isinstance(value, tuple) else None,
)
def test_a_value_that_cannot_be_is_named_with_what_was_expected(path, value, expected):
    assert problem(changed(path, value)).startswith(f"{said(path)}: {expected}")


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        (("agent", "type"), "DQN", ["DDDQN", "SAC", "PPO"]),
        (
            (*PHASE, "environment", "mixture", 0, "mode"),
            "NORMALL",
            ["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"],
        ),
        ((*PHASE, "opponent", "opponents", 0, "type"), "weak", ["basic_weak", "basic_strong"]),
        ((*PHASE, "opponent", "type"), "mixture", ["weighted_mixture", "self_play", "none"]),
        (("league", "matchmaking"), "soft", ["hard", "variance", "even"]),
        (("league", "scripted", 0), "main", ["weak", "strong"]),
    ],
    ids=lambda value: said(value) if isinstance(value, tuple) else None,
)
def test_a_word_that_is_none_of_the_possible_ones_is_answered_with_those(path, value, allowed):
    found = problem(changed(path, value))
    assert found.startswith(f"{said(path)}: ")
    assert value in found
    assert all(word in found for word in allowed)


@pytest.mark.parametrize("raw", [[], None, "text", 3, [FULL]])
def test_something_else_than_an_object_is_no_config(raw):
    assert re.match("the config: expected object, got (array|null|str|int)", problem(raw))


# What each field by itself does not show


def test_a_phase_has_episodes_or_steps():
    for both in ({"episodes": 3, "steps": 3}, {"episodes": None, "steps": None}):
        raw = copy.deepcopy(FULL)
        raw["curriculum"]["phases"][1] |= both
        assert problem(raw) == "curriculum.phases[1] must have either episodes or steps"


def test_phases_have_names_of_their_own():
    found = problem(changed((*PHASE, "name"), "first"))
    assert found == "curriculum.phases[1].name 'first' is given twice"


def phase_with(**fields):
    """The config with these fields of its second phase."""
    raw = copy.deepcopy(FULL)
    raw["curriculum"]["phases"][1] |= fields
    return raw


OTHER = {"type": "basic_weak", "weight": 0}
MIX = {"type": "weighted_mixture"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"environment": {"mixture": [{"mode": "NORMAL", "weight": 0}] * 2}},
            "curriculum.phases[1].environment.mixture: a weight must be above 0",
        ),
        (
            {"environment": {"mode": "NORMAL", "mixture": [{"mode": "NORMAL"}]}},
            "curriculum.phases[1].environment must have either mode or mixture, not both",
        ),
        (
            {"opponent": MIX | {"opponents": [OTHER, OTHER]}},
            "curriculum.phases[1].opponent.opponents: a weight must be above 0",
        ),
        ({"opponent": MIX}, "curriculum.phases[1].opponent.opponents goes with type weighted_mix"),
        ({"opponent": MIX | {"opponents": []}}, "curriculum.phases[1].opponent.opponents goes"),
        (
            {"opponent": {"type": "basic_weak", "opponents": [OTHER]}},
            "curriculum.phases[1].opponent.opponents goes with type weighted_mixture",
        ),
        (
            {
                "opponent": MIX
                | {"opponents": [{"type": "self_play"}, MIX | {"opponents": [OTHER]}]}
            },
            "curriculum.phases[1].opponent.opponents[1].type: a mixture cannot hold a mixture",
        ),
        (
            {"opponent": {"type": "basic_weak", "checkpoint": "latest"}},
            "curriculum.phases[1].opponent.checkpoint goes with type self_play, not with basic",
        ),
        (
            {"opponent": MIX | {"opponents": [{"type": "league", "checkpoint": "x"}]}},
            "curriculum.phases[1].opponent.opponents[0].checkpoint goes with type self_play",
        ),
    ],
)
def test_parts_that_do_not_go_together_are_named(fields, expected):
    assert problem(phase_with(**fields)).startswith(expected)


@pytest.mark.parametrize(
    ("opponent", "where"),
    [
        ({"type": "league"}, "opponent"),
        (
            MIX | {"opponents": [{"type": "basic_weak"}, {"type": "league"}]},
            "opponent.opponents[1]",
        ),
    ],
)
def test_a_league_must_be_described(opponent, where):
    raw = phase_with(opponent=opponent)
    raw["league"] = None
    assert problem(raw) == (
        f"curriculum.phases[1].{where}.type is league, but the config has no league"
    )


def test_a_weight_of_zero_is_fine_next_to_another():
    some = [{"type": "basic_weak", "weight": 0}, {"type": "basic_strong"}]
    parse_config(phase_with(opponent=MIX | {"opponents": some}))
    parse_config(
        phase_with(environment={"mixture": [{"mode": "NORMAL", "weight": 0}, {"mode": "NORMAL"}]})
    )


# Other environments than hockey


ELSEWHERE = {
    "task": {"id": "CartPole-v1"},
    "agent": {"type": "DDDQN"},
    "curriculum": {"phases": [{"name": "a", "steps": 10}, {"name": "b", "steps": 10}]},
}
SHAPING = FULL["curriculum"]["phases"][1]["reward_shaping"]


@pytest.mark.parametrize(
    "fields",
    [
        {"environment": {"mode": "NORMAL"}},
        {"environment": {"mixture": [{"mode": "NORMAL"}]}},
        {"environment": {"keep_mode": False}},
        {"opponent": {"type": "basic_weak"}},
        {"opponent": {"type": "self_play"}},
        {"reward_shaping": SHAPING},
    ],
    ids=str,
)
def test_only_hockey_has_modes_opponents_and_shaping(fields):
    raw = copy.deepcopy(ELSEWHERE)
    raw["curriculum"]["phases"][1] |= fields
    found = problem(raw)
    assert "curriculum.phases[1]" in found
    assert f"only {HOCKEY} has" in found
    assert "CartPole-v1" in found


@pytest.mark.parametrize(
    ("more", "where"),
    [({"league": {}}, "league"), ({"training": {"eval_opponents": ["weak"]}}, "eval_opponents")],
)
def test_only_hockey_has_a_league_and_evaluations_against_somebody(more, where):
    found = problem(ELSEWHERE | more)
    assert where in found
    assert "CartPole-v1" in found


def test_what_is_as_by_default_may_be_said_elsewhere():
    raw = copy.deepcopy(ELSEWHERE)
    raw["curriculum"]["phases"][1] |= {"opponent": {"type": "none"}, "reward_shaping": None}
    raw["curriculum"]["phases"][1]["environment"] = {}
    parse_config(raw | {"league": None})


# Settings of the agent


@pytest.mark.parametrize("place", [("hyperparameters",), ("agent", "hyperparameters")], ids=said)
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"lerning_rate": 0.1}, "lerning_rate is unknown; did you mean {}learning_rate?"),
        ({"gamma": 1.5}, "gamma: expected float <= 1"),
        ({"hidden_dim": [64, 0]}, "hidden_dim[1]: expected int >= 1"),
        ({"rollout_steps": 8}, "rollout_steps is unknown"),
        ({"batch_size": "many"}, "batch_size: expected int"),
    ],
    ids=str,
)
def test_settings_of_the_agent_are_checked_where_they_stand(place, settings, expected):
    """Before anything is begun: the file is wrong, whatever is made of it later."""
    found = problem(changed(place, settings))
    prefix = f"{said(place)}."
    assert found.startswith(prefix + expected.format(prefix))


def test_settings_of_the_agent_may_stand_in_both_places():
    raw = copy.deepcopy(FULL)
    raw["hyperparameters"] = {"gamma": 0.5, "batch_size": 8}
    raw["agent"]["hyperparameters"] = {"gamma": 0.25}
    parse_config(raw)


# Files


def test_a_file_is_named_in_its_errors(tmp_path):
    file = tmp_path / "some.json"
    file.write_text(json.dumps(changed(("agent", "type"), 3)))
    with pytest.raises(ConfigError, match=r"some\.json: agent\.type: expected str"):
        load_config(file)
    file.write_text(json.dumps(FULL))
    assert load_config(str(file)) == parse_config(FULL)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{'a': 1}", b'{"a": 1}}', b'{"a": NaN}', b"\xff\xfe", b'{"a": 1e999}', b"\x00"],
)
def test_a_file_that_is_not_json_is_said_to_be_none(content, tmp_path):
    file = tmp_path / "some.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"some\.json is not JSON: "):
        load_config(file)


def test_a_file_that_is_not_there_is_answered_with_those_that_come_along(tmp_path):
    for path in (tmp_path / "nowhere.json", "nowhere", "configs/nowhere.json"):
        with pytest.raises(FileNotFoundError, match=r"no config .*nowhere.*cartpole_dddqn, "):
            load_config(path)
    with pytest.raises(FileNotFoundError):
        load_config(tmp_path)


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_what_is_no_name_at_all_is_not_there_either(path):
    with pytest.raises(FileNotFoundError):
        load_config(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"task": {"arguments": {"keep_mode": False}}},
            r"task\.arguments\.keep_mode: hockey takes",
        ),
        ({"task": {"arguments": {"num_envs": 3}}}, r"task\.arguments\.num_envs: hockey takes"),
        ({"league": {}}, "no phase has an opponent of type league"),
    ],
)
def test_what_hockey_has_no_use_for_is_refused(change, message):
    raw = {"agent": {"type": "SAC"}, "curriculum": {"phases": [{"name": "only", "steps": 1}]}}
    with pytest.raises(ConfigError, match=message):
        parse_config(raw | change)


def test_an_empty_list_of_opponents_is_a_mistake():
    phase = {"name": "only", "steps": 1, "opponent": {"type": "basic_weak", "opponents": []}}
    with pytest.raises(ConfigError, match=r"phases\[0\]\.opponent\.opponents goes with"):
        parse_config({"agent": {"type": "SAC"}, "curriculum": {"phases": [phase]}})
