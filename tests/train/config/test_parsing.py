"""Validation of single fields: errors name the path and the expected value."""

import copy
import json
import re

import pytest

from shoal.train._config import Config, parse_config
from tests.train.config.full_config import (
    FIELDS,
    FREE,
    FULL,
    HOCKEY,
    PHASE,
    changed,
    error_of,
    path_text,
    renamed,
    value_at,
)


def test_a_config_with_every_field_is_valid():
    config = parse_config(FULL)
    assert isinstance(config, Config)
    second = config.curriculum.phases[1]
    assert second.opponent.opponents[1].checkpoint == "some.agent"
    assert second.environment.mixture[1].weight == 0.5
    assert config.league.half_life is None
    assert parse_config(json.loads(json.dumps(FULL))) == config


def test_most_fields_are_optional():
    config = parse_config(
        {"agent": {"type": "PPO"}, "curriculum": {"phases": [{"name": "a", "steps": 1}]}}
    )
    assert config.task.id == HOCKEY
    phase = config.curriculum.phases[0]
    assert (phase.opponent.type, phase.reward_shaping, phase.clear_buffer) == ("none", None, False)
    assert config.training.updates_per_step == 1.0
    assert config.league is None


# Names


@pytest.mark.parametrize("path", FIELDS, ids=path_text)
def test_a_misspelled_field_is_reported_with_a_suggestion(path):
    name = path[-1]
    for wrong in {name + name[-1], name[:-1] + "x" if len(name) > 3 else name * 2}:
        wrong_path = path_text((*path[:-1], wrong))
        expected = f"{wrong_path} is unknown; did you mean {path_text(path)}?"
        assert error_of(renamed(path, wrong)) == expected


@pytest.mark.parametrize(
    "path",
    [
        ("curriculum", "phases", 1, "reward_shaping", "CLOSENESS_START"),
        ("curriculum", "phases", 1, "reward_shaping", "N"),
        ("training", "warmup_steps"),
        ("agent",),
    ],
    ids=path_text,
)
def test_a_field_in_the_wrong_case_is_reported_with_a_suggestion(path):
    assert error_of(renamed(path, path[-1].swapcase())).endswith(f"did you mean {path_text(path)}?")


OBJECTS = [
    path
    for path in [(), *FIELDS]
    if isinstance(value_at(FULL, path), dict) and not {*path[-1:]} & {*FREE}
]


@pytest.mark.parametrize("path", OBJECTS, ids=path_text)
def test_an_unrecognizable_field_is_reported_with_all_valid_fields(path):
    message = error_of(changed((*path, "qqqqqq"), 1))
    wrong_path = path_text((*path, "qqqqqq"))
    assert message.startswith(f"{wrong_path} is unknown; expected one of ")
    assert (
        set(re.split(r",? ", message.partition("expected one of ")[2]))
        >= value_at(FULL, path).keys()
    )


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
    ids=path_text,
)
def test_a_missing_field_is_reported(path):
    raw = copy.deepcopy(FULL)
    del value_at(raw, path[:-1])[path[-1]]
    assert error_of(raw) == f"{path_text(path)} is missing"


# Types and values


@pytest.mark.parametrize("path", FIELDS, ids=path_text)
def test_a_value_of_the_wrong_type_is_reported_with_the_expected_type(path):
    wrong = 3 if isinstance(value_at(FULL, path), str | dict | list) else {"some": "thing"}
    message = error_of(changed(path, wrong))
    assert re.match(rf"{re.escape(path_text(path))}: expected .*, got (int|object)$", message)


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
    ids=lambda value: path_text(value) if isinstance(value, tuple) else None,
)
def test_a_value_out_of_range_is_reported_with_the_range(path, value, expected):
    assert error_of(changed(path, value)).startswith(f"{path_text(path)}: {expected}")


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
    ids=lambda value: path_text(value) if isinstance(value, tuple) else None,
)
def test_an_invalid_choice_is_reported_with_the_allowed_ones(path, value, allowed):
    message = error_of(changed(path, value))
    assert message.startswith(f"{path_text(path)}: ")
    assert value in message
    assert all(choice in message for choice in allowed)


@pytest.mark.parametrize("raw", [[], None, "text", 3, [FULL]])
def test_json_other_than_an_object_is_reported(raw):
    assert re.match("the config: expected object, got (array|null|str|int)", error_of(raw))
