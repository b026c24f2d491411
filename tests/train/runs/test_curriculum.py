"""Modes, opponents and shaped rewards of each episode follow the rules of its phase."""

from collections import Counter

import numpy as np
import pytest
import torch

from shoal._envs.hockey.values import Mode
from shoal.errors import ConfigError
from shoal.pools import KernelPool
from shoal.train._config.schema import RewardShaping
from shoal.train._opponents import Opponents
from shoal.train._runs.run import Run
from shoal.train._shaping import shaping_weights
from tests.train.runs.small_runs import HOCKEY, episodes, make_config, train_run

AGENTS = ["DDDQN", "SAC", "PPO"]
SHAPING = {
    "N": 3,
    "K": 4,
    "CLOSENESS_START": 20.0,
    "TOUCH_START": 7.0,
    "CLOSENESS_FINAL": 4.0,
    "TOUCH_FINAL": -1.0,
    "DIRECTION_FINAL": 8.0,
}
WEIGHTS = [
    (20, 7, 0),
    (20, 7, 0),
    (20, 7, 0),
    (20, 7, 0),  # start of the interpolation over K episodes
    (16, 5, 2),
    (12, 3, 4),
    (8, 1, 6),
    (4, -1, 8),
    (4, -1, 8),
]
"""Weights of the first episodes of a phase with this shaping, computed by hand."""


def phases_with_all_settings(checkpoint):
    """Return phases that use every setting of a phase."""
    return [
        {
            "name": "shooting",
            "episodes": 6,
            "environment": {"mode": "TRAIN_SHOOTING", "keep_mode": False},
            "reward_shaping": SHAPING,
        },
        {
            "name": "mixed",
            "steps": 120,
            "environment": {
                "mixture": [
                    {"mode": "TRAIN_DEFENSE", "weight": 2},
                    {"mode": "NORMAL"},
                    {"mode": "TRAIN_SHOOTING", "weight": 0},
                ]
            },
            "opponent": {
                "type": "weighted_mixture",
                "opponents": [
                    {"type": "basic_weak"},
                    {"type": "basic_strong"},
                    {"type": "none"},
                    {"type": "self_play"},
                    {"type": "self_play", "deterministic": False},
                    {"type": "self_play", "checkpoint": str(checkpoint)},
                ],
            },
            "reward_shaping": SHAPING,
        },
        {
            "name": "alone",
            "episodes": 5,
            "opponent": {"type": "self_play", "checkpoint": "latest", "deterministic": False},
            "clear_buffer": True,
        },
    ]


@pytest.fixture(scope="module")
def old_agents(tmp_path_factory):
    """Folders of finished runs by kind of agent."""
    folder = tmp_path_factory.mktemp("old")
    config = {kind: make_config(kind, HOCKEY, steps=40, max_episode_steps=15) for kind in AGENTS}
    return {kind: train_run(config[kind], folder, kind)["run_folder"] for kind in AGENTS}


@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize("kind", AGENTS)
def test_every_agent_with_all_settings(tmp_path, old_agents, recorder, kind, num_envs):
    # The opponent is an agent of another kind.
    other = old_agents[AGENTS[AGENTS.index(kind) - 1]]
    config = make_config(
        kind, HOCKEY, phases_with_all_settings(other), max_episode_steps=15, reward_scale=0.1
    )
    result = train_run(config, tmp_path, num_envs=num_envs)
    counts = Counter(row["phase"] for row in episodes(result["run_folder"]))
    assert (counts["shooting"], counts["alone"]) == (6, 5)
    assert counts["mixed"] >= 120 // 15 - num_envs
    assert result["total_gradient_steps"] > 0
    assert np.isfinite(result["mean_reward"])
    for parameter in recorder.agent.network.parameters():
        assert torch.isfinite(parameter).all()
    modes = {phase: set() for phase in counts}
    opponents = {phase: set() for phase in counts}
    for _, phase, mode, *opponent in recorder.episodes:
        modes[phase].add(mode)
        opponents[phase].add(tuple(opponent))
    assert modes["shooting"] == {Mode.TRAIN_SHOOTING}
    assert modes["mixed"] <= {Mode.TRAIN_DEFENSE, Mode.NORMAL}
    assert modes["alone"] == {Mode.NORMAL}
    assert opponents["shooting"] == {("none", True)}
    assert len(opponents["mixed"]) >= 3
    assert opponents["alone"] == {("self", False)}


def draw_episodes(recorder, tmp_path, phase, **more):
    """Return the settings of 600 short episodes."""
    phases = [{"name": "only", "episodes": 600} | phase]
    config = make_config("DDDQN", HOCKEY, phases, max_episode_steps=1, updates_per_step=0, **more)
    train_run(config, tmp_path, num_envs=8)
    return recorder.episodes


def test_mode_frequencies_match_weights(tmp_path, recorder):
    mixture = [
        {"mode": "TRAIN_DEFENSE", "weight": 0.7},
        {"mode": "TRAIN_SHOOTING", "weight": 0.2},
        {"mode": "NORMAL", "weight": 0.1},
    ]
    drawn = draw_episodes(recorder, tmp_path, {"environment": {"mixture": mixture}})
    counts = Counter(mode for _, _, mode, *_ in drawn)
    shares = [counts[mode] / len(drawn) for mode in (2, 1, 0)]
    # Four standard deviations of 600 draws are about 0.08.
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.08)
    for slot in range(8):  # modes are drawn per episode, not per slot
        assert len({mode for number, _, mode, *_ in drawn if number == slot}) == 3


def test_opponent_frequencies_match_weights(tmp_path, recorder):
    opponents = [
        {"type": "basic_weak", "weight": 3},
        {"type": "basic_strong", "weight": 1},
        {"type": "self_play", "weight": 1, "deterministic": False},
        {"type": "none", "weight": 0},
    ]
    phase = {"opponent": {"type": "weighted_mixture", "opponents": opponents}}
    drawn = draw_episodes(recorder, tmp_path, phase)
    counts = Counter(name for *_, name, _ in drawn)
    shares = [counts[name] / len(drawn) for name in ("weak", "strong", "self", "none")]
    assert shares == pytest.approx([0.6, 0.2, 0.2, 0], abs=0.08)
    logged = Counter(row["opponent"] for row in episodes(tmp_path / "run"))
    assert abs(logged["weak"] - counts["weak"]) <= 8  # unfinished episodes are not logged


def test_shaping_weights_equal_values_computed_by_hand():
    shaping = RewardShaping(**SHAPING)
    assert [shaping_weights(shaping, episode) for episode in range(9)] == WEIGHTS
    without_k = RewardShaping(**SHAPING | {"K": 0})
    assert [shaping_weights(without_k, episode) for episode in (2, 3)] == [(20, 7, 0), (4, -1, 8)]
    without_n_and_k = RewardShaping(**SHAPING | {"N": 0, "K": 0})
    assert shaping_weights(without_n_and_k, 0) == (4, -1, 8)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_shaped_rewards_equal_rewards_plus_weighted_infos(
    tmp_path, recorder, monkeypatch, num_envs
):
    """The weights depend on the number of started episodes."""
    shaped = {"environment": {"mode": "TRAIN_SHOOTING"}, "reward_shaping": SHAPING}
    phases = [
        {"name": "one", "episodes": 9} | shaped,
        {"name": "two", "episodes": 4} | shaped,
        {"name": "plain", "episodes": 3, "environment": {"mode": "TRAIN_SHOOTING"}},
    ]
    config = make_config("DDDQN", HOCKEY, phases, max_episode_steps=12, reward_scale=0.25)
    raw = []
    step = KernelPool.step

    def stepped(pool, actions):
        results = step(pool, actions)
        if recorder.runs and pool is recorder.task._pool:
            columns = results[4].columns
            names = ("closeness_to_puck", "touch_puck", "puck_direction")
            terms = [columns[f"reward_{name}"][:, 0].copy() for name in names]
            raw.append((np.array(results[1]), np.array(terms)))
        return results

    monkeypatch.setattr(KernelPool, "step", stepped)
    result = train_run(config, tmp_path, num_envs=num_envs)

    assert len(raw) == len(recorder.steps) == result["total_steps"] // num_envs
    assert np.any([terms for _, terms in raw])
    lengths = [9, 4, 3]
    phase, ended, started = 0, 0, num_envs
    episode = np.arange(num_envs)  # index in the phase of each slot's episode
    for (rewards, terms), step in zip(raw, recorder.steps, strict=True):
        weights = [WEIGHTS[min(k, 8)] if phase < 2 else (0, 0, 0) for k in episode]
        expected = 0.25 * (rewards + (terms.T * weights).sum(1))
        assert step.rewards == pytest.approx(expected, abs=1e-6)
        for slot in np.flatnonzero(step.terminated | step.truncated):
            ended += 1
            episode[slot] = started
            started += 1
        # A phase change truncates all episodes.
        if ended >= lengths[phase]:
            phase, ended, started = phase + 1, 0, num_envs
            episode = np.arange(num_envs)
    assert phase == 3


def test_logged_shaped_returns_equal_sums_of_rewards(tmp_path, recorder):
    phases = [{"name": "one", "episodes": 12, "reward_shaping": SHAPING}]
    config = make_config("DDDQN", HOCKEY, phases, max_episode_steps=12, reward_scale=0.25)
    train_run(config, tmp_path, num_envs=3)
    returns = dict.fromkeys(range(3), 0.0)
    rows = iter(episodes(tmp_path / "run"))
    for step in recorder.steps:
        for slot in range(3):
            returns[slot] += step.rewards[slot]
            if step.terminated[slot] or step.truncated[slot]:
                row = next(rows, None)
                if row is None:
                    return
                assert int(row["slot"]) == slot
                assert float(row["shaped_reward"]) == pytest.approx(returns[slot], rel=1e-5)
                returns[slot] = 0.0


@pytest.mark.parametrize("kind", AGENTS)
def test_phase_change_truncates_and_reuses_vector_and_agent(tmp_path, recorder, monkeypatch, kind):
    phases = [
        {"name": "one", "episodes": 5, "environment": {"mode": "TRAIN_DEFENSE"}},
        {"name": "two", "episodes": 5, "opponent": {"type": "basic_weak"}, "clear_buffer": True},
        {"name": "three", "episodes": 5, "opponent": {"type": "self_play"}},
    ]
    config = make_config(kind, HOCKEY, phases, max_episode_steps=20)
    changes = []
    next_phase = Run._next_phase

    def recorded(run):
        next_phase(run)
        task, agent = run._parts.task, run.agent
        size = 0 if kind == "PPO" else agent.memory.size
        changes.append((task, task.envs, task.envs.pool, agent, size, task._lengths.copy()))
        if not run._progress.is_over:
            last = recorder.steps[-1]
            assert (last.terminated | last.truncated).all()
            assert not (last.terminated & last.truncated).any()
            # The current observations are the first ones of new episodes.
            assert not np.array_equal(task.observations, last.next_observations)

    monkeypatch.setattr(Run, "_next_phase", recorded)
    train_run(config, tmp_path, num_envs=3)
    assert len(changes) == 3
    first = changes[0][:4]
    assert all(
        part is other for change in changes for part, other in zip(first, change[:4], strict=True)
    )
    if kind != "PPO":  # PPO clears its rollout after each update
        assert changes[0][4] == 0  # cleared
        assert changes[1][4] > 0
    assert not changes[0][5].any()  # all slots are at the start of an episode
    assert not changes[1][5].any()


def test_clear_buffer_removes_transitions_of_earlier_phases(tmp_path, recorder):
    phases = [
        {"name": "one", "episodes": 5},
        {"name": "two", "steps": 40, "clear_buffer": True},
    ]
    train_run(make_config("DDDQN", HOCKEY, phases, max_episode_steps=20), tmp_path, num_envs=4)
    memory = recorder.agent.memory
    assert memory.size == 40
    stored = memory.take(torch.arange(40))["observations"].numpy()
    expected = np.concatenate([step.observations for step in recorder.steps[-10:]])
    assert np.array_equal(stored, expected)


def test_n_step_returns_do_not_cross_a_phase_change(tmp_path, recorder):
    phases = [{"name": "one", "steps": 30}, {"name": "two", "steps": 30}]
    settings = {"n_step": 4, "gamma": 0.5}
    config = make_config("DDDQN", phases=phases, settings=settings, max_episode_steps=11)
    train_run(config, tmp_path, num_envs=1)
    memory = recorder.agent.memory
    stored = memory.take(torch.arange(memory.size))
    assert memory.size == 60  # every step starts a transition, also the last steps of a phase
    ends = [k for k, step in enumerate(recorder.steps) if step.terminated[0] or step.truncated[0]]
    assert 29 in ends
    starts = {step.observations[0].tobytes(): k for k, step in enumerate(recorder.steps)}
    for number in range(60):
        start = starts[stored["observations"][number].numpy().tobytes()]
        end = min([start + 3, *(k for k in ends if k >= start)])
        assert stored["next_observations"][number].numpy().tolist() == (
            recorder.steps[end].next_observations[0].tolist()
        )
        steps = end - start + 1
        assert stored["rewards"][number] == pytest.approx(2 - 0.5 ** (steps - 1))
        terminated = bool(recorder.steps[end].terminated[0])
        assert stored["discounts"][number] == (0 if terminated else 0.5**steps)


def test_missing_opponent_file_fails_before_the_run_starts(tmp_path):
    missing = {"type": "self_play", "checkpoint": str(tmp_path / "nobody.agent")}
    opponents = [{"type": "basic_weak", "weight": 0.999}, missing | {"weight": 0.001}]
    phases = [
        {"name": "long", "episodes": 30},
        {"name": "recent", "episodes": 3, "opponent": {"type": "weighted_mixture"}
         | {"opponents": opponents}},
    ]  # fmt: skip
    config = make_config("DDDQN", HOCKEY, phases, max_episode_steps=5)
    where = r"phases\[1\]\.opponent\.opponents\[1\]\.checkpoint: there is no agent .*nobody\.agent"
    with pytest.raises(ConfigError, match=where):
        train_run(config, tmp_path)
    assert not list(tmp_path.iterdir())


def test_opponent_of_another_environment_fails_before_the_run_starts(tmp_path):
    train_run(make_config(steps=20), tmp_path, "cartpole")
    cartpole_agent = {"type": "self_play", "checkpoint": str(tmp_path / "cartpole")}
    phases = [{"name": "long", "episodes": 3}, {"name": "recent", "episodes": 3}]
    phases[1]["opponent"] = cartpole_agent
    config = make_config("DDDQN", HOCKEY, phases, max_episode_steps=5)
    with pytest.raises(ValueError, match="cartpole"):
        train_run(config, tmp_path)
    assert not (tmp_path / "run" / "run.json").exists()


def test_opponents_make_one_forward_pass_per_network(tmp_path, recorder, monkeypatch, old_agents):
    opponents = [
        {"type": "self_play", "deterministic": False},
        {"type": "self_play", "checkpoint": old_agents["SAC"]},
        {"type": "self_play", "checkpoint": old_agents["PPO"]},
        {"type": "basic_weak"},
    ]
    phase = {"name": "only", "steps": 400}
    phase["opponent"] = {"type": "weighted_mixture", "opponents": opponents}
    calls, counts = [], []
    act = Opponents.act

    def counted(opponents, numbers, observations, out):
        calls.clear()
        for opponent in opponents._opponents:
            agent = opponent.agent
            if agent is None or hasattr(agent, "counted"):
                continue
            agent.counted = agent.act_in_environment
            agent.act_in_environment = lambda seen, *args, agent=agent: (
                calls.append((id(agent), len(seen))) or agent.counted(seen, *args)
            )
        act(opponents, numbers, observations, out)
        names = {opponents[number].name for number in numbers} - {"weak", "none"}
        assert len(calls) == len(names)
        assert sum(rows for _, rows in calls) == sum(opponents[k].name != "weak" for k in numbers)
        counts.append(len(calls))

    monkeypatch.setattr(Opponents, "act", counted)
    train_run(make_config("DDDQN", HOCKEY, [phase], max_episode_steps=10), tmp_path, num_envs=16)
    assert max(counts) == 3


def test_self_play_uses_the_current_agent(tmp_path, recorder):
    phase = {"name": "only", "steps": 40, "opponent": {"type": "self_play"}}
    train_run(make_config("SAC", HOCKEY, [phase], max_episode_steps=10), tmp_path)
    task = recorder.task
    assert {task.opponents[int(number)].agent for number in task.playing} == {recorder.agent}
