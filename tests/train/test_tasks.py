"""Transitions passed to agents: final observations, discounts and rewards."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import shoal
from shoal.train._config.schema import Phase
from shoal.train._curriculum import Progress
from shoal.train._reporting import reporter
from shoal.train._tasks import VectorTask
from tests.train.environments import EPISODE, Counting, Nested
from tests.train.runs.recorder import Recorder
from tests.train.runs.small_runs import HOCKEY, make_config, train_run

gymnasium.register("TrainCounting-v0", entry_point=Counting)
gymnasium.register("TrainNested-v0", entry_point=Nested)


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def contents(memory):
    """Return the columns of a replay memory by name."""
    return {name: part.numpy() for name, part in memory.take(torch.arange(memory.size)).items()}


@pytest.mark.parametrize(
    ("ends", "num_envs", "backend"),
    [
        ("terminated", 1, "inline"),
        ("terminated", 3, "inline"),
        ("truncated", 1, "inline"),
        ("truncated", 3, "inline"),
        ("truncated", 3, "process"),
        ("both", 3, "inline"),
    ],
)
def test_final_observations_are_stored_and_truncation_bootstraps(
    tmp_path, recorder, ends, num_envs, backend
):
    arguments = {"backend": backend, "ends": ends}
    config = make_config("DDDQN", "TrainCounting-v0", steps=150, arguments=arguments)
    train_run(config, tmp_path, num_envs=num_envs)
    memory = contents(recorder.agent.memory)
    before, after = memory["observations"], memory["next_observations"]
    assert len(before) == 150
    assert np.array_equal(after[:, 0], before[:, 0] + 1)  # never the next episode's observation
    assert np.array_equal(after[:, 1], before[:, 1])
    assert np.array_equal(memory["rewards"], after[:, 0])
    over = after[:, 0] == EPISODE
    assert over.sum() == 150 // num_envs // EPISODE * num_envs
    gamma = np.float32(0.99)
    last = gamma if ends == "truncated" else 0.0
    assert np.array_equal(memory["discounts"], np.where(over, np.float32(last), gamma))


@pytest.mark.parametrize("limit", [3, EPISODE, 20])
def test_max_episode_steps_truncates(tmp_path, recorder, limit):
    config = make_config("DDDQN", "TrainCounting-v0", steps=120, max_episode_steps=limit)
    train_run(config, tmp_path, num_envs=2)
    memory = contents(recorder.agent.memory)
    assert memory["next_observations"][:, 0].max() == min(limit, EPISODE)
    over = memory["next_observations"][:, 0] == EPISODE
    # If an episode terminates in the step of the limit, it counts as terminated.
    assert np.array_equal(memory["discounts"] == 0, over)
    assert over.any() == (limit >= EPISODE)


@pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
def test_kernels_return_final_observations(tmp_path, recorder, kind):
    """In hockey, all positions change when an episode starts."""
    config = make_config(kind, HOCKEY, steps=300, max_episode_steps=10, warmup_steps=0)
    train_run(config, tmp_path, num_envs=3)
    steps = recorder.steps
    ends = 0
    for step, later in pairwise(steps):
        over = step.terminated | step.truncated
        ends += over.sum()
        assert np.array_equal(step.next_observations[~over], later.observations[~over])
        for slot in np.flatnonzero(over):
            assert not np.array_equal(step.next_observations[slot], later.observations[slot])
            moved = np.abs(step.next_observations[slot, :2] - step.observations[slot, :2]).max()
            assert moved < 0.5  # the movement of a step, not of a reset
    assert ends >= 27


def test_cartpole_transitions_follow_its_dynamics(tmp_path, recorder):
    """Also the final transitions of episodes."""
    train_run(make_config(steps=300), tmp_path, num_envs=3)
    memory = contents(recorder.agent.memory)
    position, speed = memory["observations"][:, 0], memory["observations"][:, 1]
    assert memory["next_observations"][:, 0] == pytest.approx(position + 0.02 * speed, abs=1e-6)
    fallen = np.abs(memory["next_observations"][:, 2]) > 12 * np.pi / 180
    assert np.array_equal(memory["discounts"] == 0, fallen)
    assert fallen.sum() > 5


@pytest.mark.parametrize("ends", ["truncated", "terminated", "both"])
def test_ppo_bootstraps_only_at_truncation(tmp_path, recorder, ends):
    # Two rollouts; the second one ends with the phase, which truncates all episodes.
    config = make_config("PPO", "TrainCounting-v0", steps=32, arguments={"ends": ends})
    train_run(config, tmp_path, num_envs=2, seed=1)
    last = recorder.steps[-8:]
    # The last rollout was cleared, but its data is still in memory.
    for step, stored in zip(last, recorder.agent.rollout.outcomes[:, 0].numpy(), strict=True):
        cut = step.truncated & ~step.terminated
        rewards = step.rewards.astype(np.float32)
        assert np.array_equal(stored[~cut], rewards[~cut])
        assert (stored[cut] != rewards[cut]).all()
    assert any((step.terminated | step.truncated).all() for step in last[:-1])
    assert last[-1].truncated.all()


@pytest.mark.parametrize(
    ("kind", "backend"),
    [("SAC", "inline"), ("PPO", "inline"), ("DDDQN", "inline"), ("SAC", "process")],
)
def test_nested_observations_and_asymmetric_actions(tmp_path, recorder, kind, backend):
    settings = {"action_fineness": 3} if kind == "DDDQN" else {}
    config = make_config(
        kind, "TrainNested-v0", steps=150, arguments={"backend": backend}, settings=settings
    )
    result = train_run(config, tmp_path, num_envs=3)
    assert result["total_gradient_steps"] > 0
    # Columns: steps (1), kind (3), two bits, one-hot of two and of three.
    rows = np.concatenate([step.observations for step in recorder.steps])
    assert rows.shape == (150, 3 + 1 + 2 + 2 + 3)
    count = rows[:, 0].astype(int)
    assert np.array_equal(rows[:, 1:4], np.eye(3)[count % 3])
    assert np.array_equal(rows[:, 4:6], [[1, 0]] * 150)
    assert np.array_equal(rows[:, 6:8], np.eye(2)[count % 2])
    assert np.array_equal(rows[:, 8:], [[0, 0, 1]] * 150)


def test_each_slot_has_a_different_seed():
    observations = []
    for seed in (5, 5, 6):
        task = VectorTask("CartPole-v1", 4, seed=seed)
        task.reset()
        observations.append(task.observations.copy())
        task.close()
    assert np.array_equal(observations[0], observations[1])
    assert len(np.unique(np.concatenate(observations), axis=0)) == 5  # seeds 5, 6, 7, 8 and 9


def test_restored_task_continues_identically():
    def make_task():
        task = VectorTask("CartPole-v1", 3, seed=1, max_episode_steps=9, reward_scale=0.5)
        task.begin(Phase(name="x", steps=1), Progress([Phase(name="x", steps=1)]))
        return task

    def play(task, steps, start):
        results = []
        for number in range(steps):
            outcome = task.step((np.arange(3) + start + number) % 2)
            over = np.flatnonzero(outcome.terminated | outcome.truncated)
            results.append((*map(np.array, outcome), task.finished_episodes(over)))
            task.reset(over)
        return results

    first = make_task()
    first.reset()
    play(first, 50, 0)
    state = first.state()
    state = {name: np.array(value) for name, value in state.items()}
    expected = play(first, 60, 50)
    second = make_task()
    second.restore(state, step=40)
    actual = play(second, 60, 50)
    for one, other in zip(expected, actual, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one[:4], other[:4], strict=True))
        assert one[4] == other[4]
    first.close()
    second.close()


def test_unsupported_spaces_raise():
    gymnasium.register(
        "TrainWords-v0",
        entry_point=lambda: gymnasium.wrappers.TransformObservation(
            Counting(), str, spaces.Text(5)
        ),
    )
    with pytest.raises(ValueError, match="rows of numbers"):
        VectorTask("TrainWords-v0", 1)
    with pytest.raises(ValueError, match="Box actions of one dimension"):
        VectorTask("shoal/HockeyDiscrete-v0", 1)


def test_vector_is_closed_if_a_task_cannot_be_created(monkeypatch):
    vectors = []
    make = shoal.make

    def recorded_make(*args, **kwargs):
        vectors.append(make(*args, **kwargs))
        return vectors[-1]

    monkeypatch.setattr(shoal, "make", recorded_make)
    with pytest.raises(ValueError, match="Box actions"):
        VectorTask("shoal/HockeyDiscrete-v0", 1)
    assert vectors[0].closed
