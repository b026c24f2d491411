"""The configs that come along."""

import json

import pytest

import shoal.train
from shoal.train._agents import AGENTS
from shoal.train._config import HOCKEY, convert, load_config
from shoal.train._config.loading import SHIPPED, merged_hyperparameters

FILES = sorted(SHIPPED.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configs_that_come_along_are_right(file):
    config = load_config(file)
    settings = convert(merged_hyperparameters(config), AGENTS[config.agent.type].settings_type)
    assert config.description
    assert settings.hidden_dim
    # Nothing is said of hockey that does not count there.
    raw = json.loads(file.read_text())
    assert "max_episode_steps" not in raw["training"] or config.task.id == HOCKEY


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_configs_that_come_along_are_found_by_name(file):
    config = load_config(file)
    for name in (file.stem, file.name, f"configs/{file.name}"):
        assert load_config(name) == config


def test_a_file_of_the_same_name_counts_more(tmp_path, monkeypatch):
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
def test_there_is_a_config_for_everything_that_is_promised(task, agent, has_league):
    found = [
        config
        for config in map(load_config, FILES)
        if config.task.id == task
        and agent in (None, config.agent.type)
        and (config.league is not None) is has_league
    ]
    assert found


def test_the_configs_that_the_documentation_names_are_there():
    text = shoal.train.__doc__.partition("some come along:")[2].partition(". ")[0]
    names = text.replace("``", " ").replace(",", " ").replace(" and ", " ").split()
    assert len(names) >= 4
    assert set(names) <= {file.stem for file in FILES}


def test_the_guides_config_is_as_the_guide_has_it():
    config = load_config("configs/curriculum_simple.json")
    assert config.task.id == HOCKEY
    assert len(config.curriculum.phases) > 1
    assert {phase.opponent.type for phase in config.curriculum.phases} >= {"none", "basic_weak"}
