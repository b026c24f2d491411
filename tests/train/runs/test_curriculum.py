"""Modes, opponents and shaped rewards: for each episode of each slot, by the rules of its phase."""

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
from tests.train.runs.making import HOCKEY, episodes, made_config, trained

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
    (20, 7, 0),  # the first of K
    (16, 5, 2),
    (12, 3, 4),
    (8, 1, 6),
    (4, -1, 8),
    (4, -1, 8),
]
"""By hand: those of the first episodes of a phase with this shaping."""


def everything(checkpoint):
    """Phases that have all that a phase can have."""
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
    """The folders of runs that have ended, by the kinds of their agents."""
    folder = tmp_path_factory.mktemp("old")
    config = {kind: made_config(kind, HOCKEY, steps=40, max_episode_steps=15) for kind in AGENTS}
    return {kind: trained(config[kind], folder, kind)["run_folder"] for kind in AGENTS}


@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize("kind", AGENTS)
def test_every_agent_goes_through_everything(tmp_path, old_agents, recorder, kind, num_envs):
    # The opponent is of another kind than the agent.
    other = old_agents[AGENTS[AGENTS.index(kind) - 1]]
    config = made_config(kind, HOCKEY, everything(other), max_episode_steps=15, reward_scale=0.1)
    result = trained(config, tmp_path, num_envs=num_envs)
    told = Counter(line["phase"] for line in episodes(result["run_folder"]))
    assert (told["shooting"], told["alone"]) == (6, 5)
    assert told["mixed"] >= 120 // 15 - num_envs
    assert result["total_gradient_steps"] > 0
    assert np.isfinite(result["mean_reward"])
    for parameter in recorder.agent.network.parameters():
        assert torch.isfinite(parameter).all()
    modes = {phase: set() for phase in told}
    against = {phase: set() for phase in told}
    for _, phase, mode, *opponent in recorder.episodes:
        modes[phase].add(mode)
        against[phase].add(tuple(opponent))
    assert modes["shooting"] == {Mode.TRAIN_SHOOTING}
    assert modes["mixed"] <= {Mode.TRAIN_DEFENSE, Mode.NORMAL}
    assert modes["alone"] == {Mode.NORMAL}
    assert against["shooting"] == {("none", True)}
    assert len(against["mixed"]) >= 3
    assert against["alone"] == {("self", False)}


def drawn(recorder, tmp_path, phase, **more):
    """How often what was drawn for 600 short episodes."""
    phases = [{"name": "only", "episodes": 600} | phase]
    config = made_config("DDDQN", HOCKEY, phases, max_episode_steps=1, updates_per_step=0, **more)
    trained(config, tmp_path, num_envs=8)
    return recorder.episodes


def test_modes_are_drawn_as_often_as_their_weights_say(tmp_path, recorder):
    mixture = [
        {"mode": "TRAIN_DEFENSE", "weight": 0.7},
        {"mode": "TRAIN_SHOOTING", "weight": 0.2},
        {"mode": "NORMAL", "weight": 0.1},
    ]
    found = drawn(recorder, tmp_path, {"environment": {"mixture": mixture}})
    counts = Counter(mode for _, _, mode, *_ in found)
    shares = [counts[mode] / len(found) for mode in (2, 1, 0)]
    # Four deviations of 600 draws are about 0.08.
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.08)
    for slot in range(8):  # not one mode for each slot
        assert len({mode for number, _, mode, *_ in found if number == slot}) == 3


def test_opponents_are_drawn_as_often_as_their_weights_say(tmp_path, recorder):
    opponents = [
        {"type": "basic_weak", "weight": 3},
        {"type": "basic_strong", "weight": 1},
        {"type": "self_play", "weight": 1, "deterministic": False},
        {"type": "none", "weight": 0},
    ]
    phase = {"opponent": {"type": "weighted_mixture", "opponents": opponents}}
    found = drawn(recorder, tmp_path, phase)
    counts = Counter(name for *_, name, _ in found)
    shares = [counts[name] / len(found) for name in ("weak", "strong", "self", "none")]
    assert shares == pytest.approx([0.6, 0.2, 0.2, 0], abs=0.08)
    told = Counter(line["opponent"] for line in episodes(tmp_path / "run"))
    assert abs(told["weak"] - counts["weak"]) <= 8  # all but those that were just begun


def test_weights_of_shaping_as_they_are_by_hand():
    shaping = RewardShaping(**SHAPING)
    assert [shaping_weights(shaping, episode) for episode in range(9)] == WEIGHTS
    at_once = RewardShaping(**SHAPING | {"K": 0})
    assert [shaping_weights(at_once, episode) for episode in (2, 3)] == [(20, 7, 0), (4, -1, 8)]
    from_the_first = RewardShaping(**SHAPING | {"N": 0, "K": 0})
    assert shaping_weights(from_the_first, 0) == (4, -1, 8)


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_shaped_rewards_are_those_of_the_infos(tmp_path, recorder, monkeypatch, num_envs):
    """By hand: the reward and the weighted infos, of which the weights go by begun episodes."""
    shaped = {"environment": {"mode": "TRAIN_SHOOTING"}, "reward_shaping": SHAPING}
    phases = [
        {"name": "one", "episodes": 9} | shaped,
        {"name": "two", "episodes": 4} | shaped,
        {"name": "plain", "episodes": 3, "environment": {"mode": "TRAIN_SHOOTING"}},
    ]
    config = made_config("DDDQN", HOCKEY, phases, max_episode_steps=12, reward_scale=0.25)
    raw = []
    step = KernelPool.step

    def stepped(pool, actions):
        results = step(pool, actions)
        if recorder.runs and pool is recorder.task._pool:
            columns = results[4].columns
            names = ("closeness_to_puck", "touch_puck", "puck_direction")
            told = [columns[f"reward_{name}"][:, 0].copy() for name in names]
            raw.append((np.array(results[1]), np.array(told)))
        return results

    monkeypatch.setattr(KernelPool, "step", stepped)
    result = trained(config, tmp_path, num_envs=num_envs)

    assert len(raw) == len(recorder.steps) == result["total_steps"] // num_envs
    assert np.any([told for _, told in raw])
    wanted = [9, 4, 3]
    phase, ended, begun = 0, 0, num_envs
    episode = np.arange(num_envs)  # which one of its phase each slot plays
    for (rewards, told), step in zip(raw, recorder.steps, strict=True):
        weights = [WEIGHTS[min(k, 8)] if phase < 2 else (0, 0, 0) for k in episode]
        expected = 0.25 * (rewards + (told.T * weights).sum(1))
        assert step.rewards == pytest.approx(expected, abs=1e-6)
        for slot in np.flatnonzero(step.terminated | step.truncated):
            ended += 1
            episode[slot] = begun
            begun += 1
        # A phase that is over truncates all slots.
        if ended >= wanted[phase]:
            phase, ended, begun = phase + 1, 0, num_envs
            episode = np.arange(num_envs)
    assert phase == 3


def test_returns_are_told_with_and_without_shaping(tmp_path, recorder):
    phases = [{"name": "one", "episodes": 12, "reward_shaping": SHAPING}]
    config = made_config("DDDQN", HOCKEY, phases, max_episode_steps=12, reward_scale=0.25)
    trained(config, tmp_path, num_envs=3)
    given = dict.fromkeys(range(3), 0.0)
    told = iter(episodes(tmp_path / "run"))
    for step in recorder.steps:
        for slot in range(3):
            given[slot] += step.rewards[slot]
            if step.terminated[slot] or step.truncated[slot]:
                line = next(told, None)
                if line is None:
                    return
                assert int(line["slot"]) == slot
                assert float(line["shaped_reward"]) == pytest.approx(given[slot], rel=1e-5)
                given[slot] = 0.0


@pytest.mark.parametrize("kind", AGENTS)
def test_a_phase_change_synchronises_and_rebuilds_nothing(tmp_path, recorder, monkeypatch, kind):
    phases = [
        {"name": "one", "episodes": 5, "environment": {"mode": "TRAIN_DEFENSE"}},
        {"name": "two", "episodes": 5, "opponent": {"type": "basic_weak"}, "clear_buffer": True},
        {"name": "three", "episodes": 5, "opponent": {"type": "self_play"}},
    ]
    config = made_config(kind, HOCKEY, phases, max_episode_steps=20)
    seen = []
    begin_next = Run._next_phase

    def watched(run):
        begin_next(run)
        task, agent = run._parts.task, run.agent
        held = 0 if kind == "PPO" else agent.memory.size
        seen.append((task, task.envs, task.envs.pool, agent, held, task._lengths.copy()))
        if not run._progress.is_over:
            last = recorder.steps[-1]
            assert (last.terminated | last.truncated).all()
            assert not (last.terminated & last.truncated).any()
            # What is seen next is the beginning of episodes.
            assert not np.array_equal(task.observations, last.next_observations)

    monkeypatch.setattr(Run, "_next_phase", watched)
    trained(config, tmp_path, num_envs=3)
    assert len(seen) == 3
    first = seen[0][:4]
    assert all(
        part is other for found in seen for part, other in zip(first, found[:4], strict=True)
    )
    if kind != "PPO":  # which forgets all of it at each update
        assert seen[0][4] == 0  # cleared
        assert seen[1][4] > 0
    assert not seen[0][5].any()  # all slots are at the first step of an episode
    assert not seen[1][5].any()


def test_the_memory_of_a_cleared_phase_is_of_that_phase_alone(tmp_path, recorder):
    phases = [
        {"name": "one", "episodes": 5},
        {"name": "two", "steps": 40, "clear_buffer": True},
    ]
    trained(made_config("DDDQN", HOCKEY, phases, max_episode_steps=20), tmp_path, num_envs=4)
    memory = recorder.agent.memory
    assert memory.size == 40
    held = memory.take(torch.arange(40))["observations"].numpy()
    given = np.concatenate([step.observations for step in recorder.steps[-10:]])
    assert np.array_equal(held, given)


def test_n_step_returns_do_not_reach_over_a_phase_change(tmp_path, recorder):
    phases = [{"name": "one", "steps": 30}, {"name": "two", "steps": 30}]
    settings = {"n_step": 4, "gamma": 0.5}
    config = made_config("DDDQN", phases=phases, settings=settings, max_episode_steps=11)
    trained(config, tmp_path, num_envs=1)
    memory = recorder.agent.memory
    held = memory.take(torch.arange(memory.size))
    assert memory.size == 60  # every step begins a transition, also the last ones of a phase
    ends = [k for k, step in enumerate(recorder.steps) if step.terminated[0] or step.truncated[0]]
    assert 29 in ends
    starts = {step.observations[0].tobytes(): k for k, step in enumerate(recorder.steps)}
    for number in range(60):
        start = starts[held["observations"][number].numpy().tobytes()]
        end = min([start + 3, *(k for k in ends if k >= start)])
        assert held["next_observations"][number].numpy().tolist() == (
            recorder.steps[end].next_observations[0].tolist()
        )
        steps = end - start + 1
        assert held["rewards"][number] == pytest.approx(2 - 0.5 ** (steps - 1))
        terminated = bool(recorder.steps[end].terminated[0])
        assert held["discounts"][number] == (0 if terminated else 0.5**steps)


def test_an_opponent_that_is_not_there_is_an_error_before_anything_begins(tmp_path):
    missing = {"type": "self_play", "checkpoint": str(tmp_path / "nobody.agent")}
    opponents = [{"type": "basic_weak", "weight": 0.999}, missing | {"weight": 0.001}]
    phases = [
        {"name": "long", "episodes": 30},
        {"name": "late", "episodes": 3, "opponent": {"type": "weighted_mixture"}
         | {"opponents": opponents}},
    ]  # fmt: skip
    config = made_config("DDDQN", HOCKEY, phases, max_episode_steps=5)
    where = r"phases\[1\]\.opponent\.opponents\[1\]\.checkpoint: there is no agent .*nobody\.agent"
    with pytest.raises(ConfigError, match=where):
        trained(config, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_opponent_of_another_game_is_an_error_before_anything_begins(tmp_path):
    trained(made_config(steps=20), tmp_path, "cartpole")
    stranger = {"type": "self_play", "checkpoint": str(tmp_path / "cartpole")}
    phases = [{"name": "long", "episodes": 3}, {"name": "late", "episodes": 3}]
    phases[1]["opponent"] = stranger
    config = made_config("DDDQN", HOCKEY, phases, max_episode_steps=5)
    with pytest.raises(ValueError, match="cartpole"):
        trained(config, tmp_path)
    assert not (tmp_path / "run" / "run.json").exists()


def test_opponents_of_one_network_act_at_once(tmp_path, recorder, monkeypatch, old_agents):
    """One pass for each network that plays, however many slots it plays in."""
    opponents = [
        {"type": "self_play", "deterministic": False},
        {"type": "self_play", "checkpoint": old_agents["SAC"]},
        {"type": "self_play", "checkpoint": old_agents["PPO"]},
        {"type": "basic_weak"},
    ]
    phase = {"name": "only", "steps": 400}
    phase["opponent"] = {"type": "weighted_mixture", "opponents": opponents}
    calls, most = [], []
    act = Opponents.act

    def counted(opponents, numbers, observations, out):
        calls.clear()
        for known in opponents._known:
            agent = known.agent
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
        most.append(len(calls))

    monkeypatch.setattr(Opponents, "act", counted)
    trained(made_config("DDDQN", HOCKEY, [phase], max_episode_steps=10), tmp_path, num_envs=16)
    assert max(most) == 3


def test_self_play_is_against_the_agent_as_it_is(tmp_path, recorder):
    phase = {"name": "only", "steps": 40, "opponent": {"type": "self_play"}}
    trained(made_config("SAC", HOCKEY, [phase], max_episode_steps=10), tmp_path)
    task = recorder.task
    assert {task.opponents[int(number)].agent for number in task.playing} == {recorder.agent}
