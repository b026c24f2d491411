"""What agents are given: last observations of episodes, whether they go on, and rewards."""

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
from tests.train.runs.making import HOCKEY, made_config, trained
from tests.train.runs.recording import Recorder

gymnasium.register("TrainCounting-v0", entry_point=Counting)
gymnasium.register("TrainNested-v0", entry_point=Nested)


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def held(memory):
    """What a memory has, by the names of its parts."""
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
def test_the_last_observation_is_the_last_and_what_was_truncated_goes_on(
    tmp_path, recorder, ends, num_envs, backend
):
    arguments = {"backend": backend, "ends": ends}
    config = made_config("DDDQN", "TrainCounting-v0", steps=150, arguments=arguments)
    trained(config, tmp_path, num_envs=num_envs)
    memory = held(recorder.agent.memory)
    before, after = memory["observations"], memory["next_observations"]
    assert len(before) == 150
    assert np.array_equal(after[:, 0], before[:, 0] + 1)  # never the first one of the next
    assert np.array_equal(after[:, 1], before[:, 1])
    assert np.array_equal(memory["rewards"], after[:, 0])
    over = after[:, 0] == EPISODE
    assert over.sum() == 150 // num_envs // EPISODE * num_envs
    goes_on = np.float32(0.99)
    at_the_end = goes_on if ends == "truncated" else 0.0
    assert np.array_equal(memory["discounts"], np.where(over, np.float32(at_the_end), goes_on))


@pytest.mark.parametrize("limit", [3, EPISODE, 20])
def test_the_limit_of_the_config_truncates(tmp_path, recorder, limit):
    config = made_config("DDDQN", "TrainCounting-v0", steps=120, max_episode_steps=limit)
    trained(config, tmp_path, num_envs=2)
    memory = held(recorder.agent.memory)
    assert memory["next_observations"][:, 0].max() == min(limit, EPISODE)
    over = memory["next_observations"][:, 0] == EPISODE
    # Where both come at once, the episode has terminated.
    assert np.array_equal(memory["discounts"] == 0, over)
    assert over.any() == (limit >= EPISODE)


@pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
def test_kernels_tell_the_last_observation(tmp_path, recorder, kind):
    """In the vector of hockey nothing is where it was when an episode begins."""
    config = made_config(kind, HOCKEY, steps=300, max_episode_steps=10, warmup_steps=0)
    trained(config, tmp_path, num_envs=3)
    steps = recorder.steps
    ends = 0
    for step, later in pairwise(steps):
        over = step.terminated | step.truncated
        ends += over.sum()
        assert np.array_equal(step.next_observations[~over], later.observations[~over])
        for slot in np.flatnonzero(over):
            assert not np.array_equal(step.next_observations[slot], later.observations[slot])
            moved = np.abs(step.next_observations[slot, :2] - step.observations[slot, :2]).max()
            assert moved < 0.5  # of a step, not of a new beginning
    assert ends >= 27


def test_gravity_is_what_tells_steps_of_a_pole(tmp_path, recorder):
    """The steps of CartPole follow from one another, also the last ones of episodes."""
    trained(made_config(steps=300), tmp_path, num_envs=3)
    memory = held(recorder.agent.memory)
    position, speed = memory["observations"][:, 0], memory["observations"][:, 1]
    assert memory["next_observations"][:, 0] == pytest.approx(position + 0.02 * speed, abs=1e-6)
    fallen = np.abs(memory["next_observations"][:, 2]) > 12 * np.pi / 180
    assert np.array_equal(memory["discounts"] == 0, fallen)
    assert fallen.sum() > 5


@pytest.mark.parametrize("ends", ["truncated", "terminated", "both"])
def test_ppo_bootstraps_at_truncation_alone(tmp_path, recorder, ends):
    # Two rollouts; at the end of the second one the phase is cut.
    config = made_config("PPO", "TrainCounting-v0", steps=32, arguments={"ends": ends})
    trained(config, tmp_path, num_envs=2, seed=1)
    last = recorder.steps[-8:]
    # The last rollout was learnt from and cleared, but is still there.
    for step, given in zip(last, recorder.agent.rollout.outcomes[:, 0].numpy(), strict=True):
        cut = step.truncated & ~step.terminated
        rewards = step.rewards.astype(np.float32)
        assert np.array_equal(given[~cut], rewards[~cut])
        assert (given[cut] != rewards[cut]).all()
    assert any((step.terminated | step.truncated).all() for step in last[:-1])
    assert last[-1].truncated.all()


@pytest.mark.parametrize(
    ("kind", "backend"),
    [("SAC", "inline"), ("PPO", "inline"), ("DDDQN", "inline"), ("SAC", "process")],
)
def test_nested_observations_and_uneven_actions(tmp_path, recorder, kind, backend):
    settings = {"action_fineness": 3} if kind == "DDDQN" else {}
    config = made_config(
        kind, "TrainNested-v0", steps=150, arguments={"backend": backend}, settings=settings
    )
    result = trained(config, tmp_path, num_envs=3)
    assert result["total_gradient_steps"] > 0
    # Steps (1), kind (3), then two bits, and two and three choices.
    seen = np.concatenate([step.observations for step in recorder.steps])
    assert seen.shape == (150, 3 + 1 + 2 + 2 + 3)
    count = seen[:, 0].astype(int)
    assert np.array_equal(seen[:, 1:4], np.eye(3)[count % 3])
    assert np.array_equal(seen[:, 4:6], [[1, 0]] * 150)
    assert np.array_equal(seen[:, 6:8], np.eye(2)[count % 2])
    assert np.array_equal(seen[:, 8:], [[0, 0, 1]] * 150)


def test_slots_begin_with_seeds_of_their_own():
    seen = []
    for seed in (5, 5, 6):
        task = VectorTask("CartPole-v1", 4, seed=seed)
        task.reset()
        seen.append(task.observations.copy())
        task.close()
    assert np.array_equal(seen[0], seen[1])
    assert len(np.unique(np.concatenate(seen), axis=0)) == 5  # 5, 6, 7, 8 and 9


def test_a_task_goes_on_where_it_was_saved():
    def made():
        task = VectorTask("CartPole-v1", 3, seed=1, max_episode_steps=9, reward_scale=0.5)
        task.begin(Phase(name="x", steps=1), Progress([Phase(name="x", steps=1)]))
        return task

    def play(task, steps, start):
        found = []
        for number in range(steps):
            outcome = task.step((np.arange(3) + start + number) % 2)
            over = np.flatnonzero(outcome.terminated | outcome.truncated)
            found.append((*map(np.array, outcome), task.ended(over)))
            task.reset(over)
        return found

    first = made()
    first.reset()
    play(first, 50, 0)
    state = first.state()
    state = {name: np.array(value) for name, value in state.items()}
    wanted = play(first, 60, 50)
    second = made()
    second.restore(state, step=40)
    found = play(second, 60, 50)
    for one, other in zip(wanted, found, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one[:4], other[:4], strict=True))
        assert one[4] == other[4]
    first.close()
    second.close()


def test_spaces_that_agents_cannot_have():
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


def test_vectors_are_closed_where_a_task_cannot_be(monkeypatch):
    made = []
    make = shoal.make

    def kept(*args, **more):
        made.append(make(*args, **more))
        return made[-1]

    monkeypatch.setattr(shoal, "make", kept)
    with pytest.raises(ValueError, match="Box actions"):
        VectorTask("shoal/HockeyDiscrete-v0", 1)
    assert made[0].closed
