"""Runs with a league: snapshots, exploiters and dropped members."""

import csv

import numpy as np
import pytest
import torch

from shoal.errors import ConfigError
from shoal.train import load_agent, resume_run
from shoal.train._league.members import EXPLOITER, MAIN
from shoal.train._runs.league_play import LeaguePlay
from tests.train.runs.small_runs import (
    HOCKEY,
    checkpoints,
    differences,
    last_state,
    make_config,
    train_run,
)

LEAGUE = {
    "snapshot_every": 6,
    "size": 3,
    "exploiter_share": 0.34,
    "exploiter_window": 4,
    "exploiter_max_episodes": 4,
}
PHASES = [
    {
        "name": "league",
        "episodes": 40,
        "opponent": {"type": "league", "deterministic": False},
        "environment": {"mixture": [{"mode": "TRAIN_DEFENSE"}, {"mode": "NORMAL"}]},
    }
]


def league_config(kind="DDDQN", league=None, phases=PHASES, **more):
    options = {"max_episode_steps": 12} | more
    return make_config(kind, HOCKEY, phases, league=LEAGUE | (league or {}), **options)


@pytest.mark.parametrize(
    ("kind", "num_envs"), [("DDDQN", 2), ("DDDQN", 3), ("DDDQN", 8), ("SAC", 8), ("PPO", 3)]
)
def test_league_grows(tmp_path, recorder, kind, num_envs):
    result = train_run(league_config(kind), tmp_path, num_envs=num_envs)
    assert result["total_episodes"] == 40  # without the exploiter's episodes
    league = recorder.parts.league.league
    names = {member.name for member in league.members}
    assert {"weak", "strong"} < names
    assert any(name.startswith("exploiter") for name in names)
    assert any(name.startswith("snapshot") for name in names)
    assert len(names) <= 2 + 3
    for member in league.members:
        if member.file is not None:
            assert load_agent(tmp_path / "run" / "league" / member.file).kind == kind
    with open(tmp_path / "run" / "logs" / "ratings.csv") as file:
        players = {line["player"] for line in csv.DictReader(file)}
    assert {MAIN, EXPLOITER, "weak", "snapshot-1"} <= players
    for trainee in recorder.parts.trainees:
        assert trainee.updates > 0
        assert all(torch.isfinite(value).all() for value in trainee.agent.network.parameters())


def test_exploiter_plays_only_against_the_agent(tmp_path, recorder):
    train_run(league_config(), tmp_path, num_envs=6)
    slots = {slot for slot, *_ in recorder.episodes}
    assert slots == set(range(6))
    assert {name for slot, *_, name, _ in recorder.episodes if slot >= 4} == {"self"}
    assert len({name for slot, *_, name, _ in recorder.episodes if slot < 4}) > 2
    main, exploiter = recorder.parts.trainees
    assert (main.agent.num_slots, exploiter.agent.num_slots) == (4, 2)


def test_finished_exploiter_is_reset_to_the_agent(tmp_path, recorder, monkeypatch):
    grow, resets = LeaguePlay.grow, []

    def checked_grow(play, step, episodes, main, exploiter, opponents, task):
        table, exploiter_reset = grow(play, step, episodes, main, exploiter, opponents, task)
        if exploiter_reset:
            pairs = zip(
                main.network.state_dict().values(),
                exploiter.network.state_dict().values(),
                strict=True,
            )
            assert all(torch.equal(*pair) for pair in pairs)
            assert exploiter.memory.size == 0
            resets.append(step)
        return table, exploiter_reset

    monkeypatch.setattr(LeaguePlay, "grow", checked_grow)
    train_run(league_config(), tmp_path, num_envs=6)
    assert resets


def test_snapshots_do_not_change(tmp_path, recorder):
    result = train_run(league_config(league={"size": 30}), tmp_path, num_envs=3)
    folder = tmp_path / "run"
    first = load_agent(folder / "league" / "snapshot-1.pt")
    second = load_agent(folder / "league" / "snapshot-2.pt")
    final = load_agent(folder / "final.agent")
    states = np.random.default_rng(0).normal(size=(50, 18))
    values = [agent.evaluate(states) for agent in (first, second, final)]
    assert not np.array_equal(values[0], values[1])
    assert not np.array_equal(values[1], values[2])
    assert result["total_episodes"] == 40


def test_exploiter_needs_two_environments(tmp_path):
    with pytest.raises(ConfigError, match="exploiter_share needs at least 2 environments"):
        train_run(league_config(), tmp_path, num_envs=1)


def test_league_without_exploiter_in_one_slot(tmp_path):
    result = train_run(league_config(league={"exploiter_share": 0.0}), tmp_path, num_envs=1)
    assert result["total_episodes"] == 40


def test_checkpoint_with_a_dropped_member_that_is_still_playing(tmp_path):
    """A small league drops snapshots during their games."""
    league = {"snapshot_every": 1, "size": 2, "exploiter_share": 0.0, "scripted": []}
    phases = [PHASES[0] | {"episodes": 30}]
    config = league_config(
        league=league, phases=phases, max_episode_steps=40, checkpoint_save_freq=160,
        checkpoints_kept=100,
    )  # fmt: skip
    train_run(config, tmp_path, num_envs=4)
    folder = tmp_path / "run"
    expected = last_state(folder)
    # At least one of the checkpoints was written during such a game.
    for checkpoint in checkpoints(folder)[:-1]:
        resume_run(folder, checkpoint.name, verbose=False)
        assert not differences(expected, last_state(folder))


def test_phases_with_and_without_a_league(tmp_path, recorder):
    phases = [
        {"name": "alone", "episodes": 5, "opponent": {"type": "basic_weak"}},
        PHASES[0] | {"episodes": 15},
        {"name": "mixed", "episodes": 8, "clear_buffer": True}
        | {"opponent": {"type": "weighted_mixture", "opponents": [
            {"type": "league", "weight": 2}, {"type": "basic_strong"}]}},
    ]  # fmt: skip
    result = train_run(league_config(phases=phases), tmp_path, num_envs=5)
    assert result["total_episodes"] == 28


def test_only_regular_games_are_rated(tmp_path, recorder):
    """Games in training modes do not count."""
    training = PHASES[0] | {"environment": {"mode": "TRAIN_SHOOTING"}, "episodes": 10}
    train_run(league_config(phases=[training]), tmp_path, "training", num_envs=3)
    members = recorder.parts.league.league.table(0)
    assert {member.games for member in members} == {0}
    mixed = PHASES[0] | {"episodes": 60}
    train_run(league_config(phases=[mixed]), tmp_path, "mixed", num_envs=3)
    (main,) = (row for row in recorder.parts.league.league.table(0) if row.player == MAIN)
    rows = (tmp_path / "mixed" / "logs" / "episodes.csv").read_text().splitlines()
    assert 0 < main.games < len(rows) + 60
