"""The bundled configs."""

import json
import re

import pytest

import shoal.train
from shoal.train._agents import AGENTS
from shoal.train._config import HOCKEY, convert, load_config
from shoal.train._config.loading import SHIPPED, merged_hyperparameters

FILES = sorted(SHIPPED.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_bundled_configs_are_valid(file):
    config = load_config(file)
    settings = convert(merged_hyperparameters(config), AGENTS[config.agent.type].settings_type)
    assert config.description
    assert settings.hidden_dim
    # CartPole and Pendulum already have a time limit.
    raw = json.loads(file.read_text())
    assert "max_episode_steps" not in raw["training"] or config.task.id == HOCKEY


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_bundled_configs_are_found_by_name(file):
    config = load_config(file)
    for name in (file.stem, file.name, f"configs/{file.name}"):
        assert load_config(name) == config


def test_a_file_takes_precedence_over_a_bundled_config_of_the_same_name(tmp_path, monkeypatch):
    raw = json.loads((SHIPPED / "cartpole_dddqn.json").read_text()) | {"description": "mine"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "cartpole_dddqn.json").write_text(json.dumps(raw))
    assert load_config("configs/cartpole_dddqn.json").description == "mine"
    assert load_config("cartpole_dddqn").description != "mine"


@pytest.mark.parametrize(
    ("task", "agent", "has_league"),
    [
        ("CartPole-v1", "DDDQN", False),
        ("Pendulum-v1", "SAC", False),
        (HOCKEY, "DDDQN", False),
        (HOCKEY, "SAC", False),
        (HOCKEY, "PPO", False),
        (HOCKEY, None, True),
    ],
)
def test_every_supported_combination_has_a_bundled_config(task, agent, has_league):
    matching = [
        config
        for config in map(load_config, FILES)
        if config.task.id == task
        and agent in (None, config.agent.type)
        and (config.league is not None) is has_league
    ]
    assert matching


def test_the_module_docstring_lists_the_bundled_configs():
    listed = re.search(r"(?:``\w+``(?:,| and)\s+)+``\w+``", shoal.train.__doc__)[0]
    assert set(re.findall(r"\w+_\w+", listed)) == {file.stem for file in FILES}


def test_the_curriculum_config_has_the_phases_of_the_guide():
    config = load_config("configs/curriculum_simple.json")
    assert config.task.id == HOCKEY
    assert len(config.curriculum.phases) > 1
    assert {phase.opponent.type for phase in config.curriculum.phases} >= {"none", "basic_weak"}
