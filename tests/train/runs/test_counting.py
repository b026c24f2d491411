"""Numbers of steps, episodes, updates and evaluations of runs."""

import csv
from fractions import Fraction
from math import floor

import pytest

from tests.train.runs.small_runs import HOCKEY, episodes, make_config, train_run


def expected_updates(steps, warmup, per_step):
    return max(0, floor((steps - warmup) * Fraction(str(per_step))))


@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize(
    ("per_step", "train_freq", "warmup"),
    [(1, 1, 50), (0.5, 1, 0), (0.3, 7, 33), (2.7, 1, 100), (1, 64, 10), (0.1, 1000, 0), (0, 1, 0)],
)
def test_number_of_updates_follows_environment_steps(
    tmp_path, num_envs, per_step, train_freq, warmup
):
    config = make_config(
        steps=200, updates_per_step=per_step, train_freq=train_freq, warmup_steps=warmup
    )
    result = train_run(config, tmp_path, num_envs=num_envs)
    assert result["total_steps"] == -(-200 // num_envs) * num_envs
    assert result["total_gradient_steps"] == expected_updates(
        result["total_steps"], warmup, per_step
    )


@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("DDDQN", {"prioritized": True, "n_step": 5, "target_update_freq": 4}),
        ("SAC", {"noise": "pink", "n_step": 3}),
    ],
)
def test_number_of_updates_with_other_agents_and_phases(tmp_path, agent, settings, num_envs):
    phases = [
        {"name": "one", "episodes": 5},
        {"name": "two", "steps": 61, "clear_buffer": True},
        {"name": "three", "episodes": 2, "clear_buffer": True},
    ]
    config = make_config(
        agent, HOCKEY, phases, settings=settings, updates_per_step=0.7, max_episode_steps=20
    )
    result = train_run(config, tmp_path, num_envs=num_envs)
    assert result["total_gradient_steps"] == expected_updates(result["total_steps"], 50, 0.7)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_ppo_updates_per_rollout(tmp_path, num_envs):
    result = train_run(make_config("PPO", steps=240), tmp_path, num_envs=num_envs)
    rollouts = 240 // (8 * num_envs)
    assert result["total_gradient_steps"] == rollouts * 2 * 2


def test_run_shorter_than_its_warmup_makes_no_updates(tmp_path):
    result = train_run(make_config(steps=100, warmup_steps=101), tmp_path)
    assert (result["total_steps"], result["total_gradient_steps"]) == (100, 0)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_episodes_per_phase(tmp_path, num_envs):
    phases = [
        {"name": "one", "episodes": 7},
        {"name": "two", "episodes": 1},
        {"name": "three", "steps": 100},
        {"name": "four", "episodes": 10},
    ]
    result = train_run(make_config(phases=phases), tmp_path, num_envs=num_envs)
    rows = episodes(result["run_folder"])
    names = [row["phase"] for row in rows]
    assert [names.count(name) for name in ("one", "two", "four")] == [7, 1, 10]
    assert names == sorted(names, key=["one", "two", "three", "four"].index)
    assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
    assert result["total_episodes"] == len(rows)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_steps_of_a_slot_equal_its_episode_lengths(tmp_path, num_envs):
    """A slot's episodes follow one another without a gap."""
    result = train_run(make_config(steps=400), tmp_path, num_envs=num_envs)
    ends = dict.fromkeys(range(num_envs), 0)
    for line in episodes(result["run_folder"]):
        slot = int(line["slot"])
        ends[slot] += int(line["length"]) * num_envs
        assert int(line["step"]) == ends[slot]
        assert float(line["reward"]) == int(line["length"])  # CartPole's reward is 1
    assert result["total_steps"] == -(-400 // num_envs) * num_envs
    assert all(end <= result["total_steps"] for end in ends.values())


def test_steps_of_evaluations(tmp_path):
    result = train_run(make_config(steps=400), tmp_path, num_envs=3, eval_freq_steps=100)
    assert [record["step"] for record in result["evaluation_results"]] == [102, 201, 300, 402]


def test_missed_evaluations_are_skipped(tmp_path):
    """If one vector step passes several evaluation steps, there is one evaluation."""
    result = train_run(make_config(steps=400), tmp_path, num_envs=50, eval_freq_steps=20)
    steps = [record["step"] for record in result["evaluation_results"]]
    assert steps == sorted(set(steps))
    assert steps[-1] == 400


def test_rates_of_steps_and_updates(tmp_path):
    result = train_run(make_config(steps=300, updates_per_step=0.5), tmp_path)
    assert result["updates_per_step"] == pytest.approx(125 / 300)
    assert result["updates_per_second"] / result["steps_per_second"] == pytest.approx(125 / 300)
    with open(f"{result['run_folder']}/logs/progress.csv") as file:
        last = list(csv.DictReader(file))[-1]
    assert (last["step"], last["updates"]) == ("300", "125")
