"""Validation of fields that depend on each other, on the environment or on the agent."""

import copy

import pytest

from shoal.errors import ConfigError
from shoal.train._config import parse_config
from tests.train.config.full_config import FULL, HOCKEY, PHASE, changed, error_of, path_text


def test_a_phase_requires_either_episodes_or_steps():
    for fields in ({"episodes": 3, "steps": 3}, {"episodes": None, "steps": None}):
        raw = copy.deepcopy(FULL)
        raw["curriculum"]["phases"][1] |= fields
        assert error_of(raw) == "curriculum.phases[1] must have either episodes or steps"


def test_names_of_phases_must_be_unique():
    message = error_of(changed((*PHASE, "name"), "first"))
    assert message == "curriculum.phases[1].name 'first' is a duplicate"


def phase_with(**fields):
    """Return the full config with changed fields of its second phase."""
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
            "curriculum.phases[1].environment.mixture: at least one weight must be above 0",
        ),
        (
            {"environment": {"mode": "NORMAL", "mixture": [{"mode": "NORMAL"}]}},
            "curriculum.phases[1].environment must have either mode or mixture, not both",
        ),
        (
            {"opponent": MIX | {"opponents": [OTHER, OTHER]}},
            "curriculum.phases[1].opponent.opponents: at least one weight must be above 0",
        ),
        ({"opponent": MIX}, "curriculum.phases[1].opponent.opponents must be a non-empty list"),
        ({"opponent": MIX | {"opponents": []}}, "curriculum.phases[1].opponent.opponents must be"),
        (
            {"opponent": {"type": "basic_weak", "opponents": [OTHER]}},
            "curriculum.phases[1].opponent.opponents must be a non-empty list",
        ),
        (
            {
                "opponent": MIX
                | {"opponents": [{"type": "self_play"}, MIX | {"opponents": [OTHER]}]}
            },
            "curriculum.phases[1].opponent.opponents[1].type: a mixture cannot contain a mixture",
        ),
        (
            {"opponent": {"type": "basic_weak", "checkpoint": "latest"}},
            "curriculum.phases[1].opponent.checkpoint requires type self_play, got basic",
        ),
        (
            {"opponent": MIX | {"opponents": [{"type": "league", "checkpoint": "x"}]}},
            "curriculum.phases[1].opponent.opponents[0].checkpoint requires type self_play",
        ),
    ],
)
def test_invalid_combinations_are_reported(fields, expected):
    assert error_of(phase_with(**fields)).startswith(expected)


@pytest.mark.parametrize(
    ("opponent", "path"),
    [
        ({"type": "league"}, "opponent"),
        (
            MIX | {"opponents": [{"type": "basic_weak"}, {"type": "league"}]},
            "opponent.opponents[1]",
        ),
    ],
)
def test_an_opponent_of_type_league_requires_a_league(opponent, path):
    raw = phase_with(opponent=opponent)
    raw["league"] = None
    assert error_of(raw) == (
        f"curriculum.phases[1].{path}.type is league, but the config has no league"
    )


def test_a_weight_of_zero_is_valid_if_another_one_is_positive():
    opponents = [{"type": "basic_weak", "weight": 0}, {"type": "basic_strong"}]
    parse_config(phase_with(opponent=MIX | {"opponents": opponents}))
    parse_config(
        phase_with(environment={"mixture": [{"mode": "NORMAL", "weight": 0}, {"mode": "NORMAL"}]})
    )


# Environments other than hockey


CARTPOLE = {
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
def test_modes_opponents_and_shaping_require_hockey(fields):
    raw = copy.deepcopy(CARTPOLE)
    raw["curriculum"]["phases"][1] |= fields
    message = error_of(raw)
    assert "curriculum.phases[1]" in message
    assert f"only {HOCKEY} has" in message
    assert "CartPole-v1" in message


@pytest.mark.parametrize(
    ("more", "path"),
    [({"league": {}}, "league"), ({"training": {"eval_opponents": ["weak"]}}, "eval_opponents")],
)
def test_a_league_and_evaluation_opponents_require_hockey(more, path):
    message = error_of(CARTPOLE | more)
    assert path in message
    assert "CartPole-v1" in message


def test_default_values_of_hockey_fields_are_valid_for_other_environments():
    raw = copy.deepcopy(CARTPOLE)
    raw["curriculum"]["phases"][1] |= {"opponent": {"type": "none"}, "reward_shaping": None}
    raw["curriculum"]["phases"][1]["environment"] = {}
    parse_config(raw | {"league": None})


# Settings of the agent


@pytest.mark.parametrize(
    "path", [("hyperparameters",), ("agent", "hyperparameters")], ids=path_text
)
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
def test_hyperparameters_are_validated_with_their_path(path, settings, expected):
    """The error is raised when the config is loaded, before a run starts."""
    message = error_of(changed(path, settings))
    prefix = f"{path_text(path)}."
    assert message.startswith(prefix + expected.format(prefix))


def test_hyperparameters_may_be_in_both_objects():
    raw = copy.deepcopy(FULL)
    raw["hyperparameters"] = {"gamma": 0.5, "batch_size": 8}
    raw["agent"]["hyperparameters"] = {"gamma": 0.25}
    parse_config(raw)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"task": {"arguments": {"keep_mode": False}}},
            r"task\.arguments\.keep_mode is not supported for hockey",
        ),
        (
            {"task": {"arguments": {"num_envs": 3}}},
            r"task\.arguments\.num_envs is not supported for hockey",
        ),
        ({"league": {}}, "no phase has an opponent of type league"),
    ],
)
def test_settings_that_have_no_effect_in_hockey_raise(change, message):
    raw = {"agent": {"type": "SAC"}, "curriculum": {"phases": [{"name": "only", "steps": 1}]}}
    with pytest.raises(ConfigError, match=message):
        parse_config(raw | change)


def test_an_empty_list_of_opponents_raises():
    phase = {"name": "only", "steps": 1, "opponent": {"type": "basic_weak", "opponents": []}}
    with pytest.raises(
        ConfigError, match=r"phases\[0\]\.opponent\.opponents must be a non-empty list"
    ):
        parse_config({"agent": {"type": "SAC"}, "curriculum": {"phases": [phase]}})
