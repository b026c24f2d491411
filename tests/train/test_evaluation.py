"""Evaluation: game counts, seeds, confidence intervals, and independence from training."""

import math
import shutil
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

import shoal
from shoal.train import (
    AgentSpaces,
    _evaluation,
    _saved_agents,
    make_agent,
    play_episodes,
    play_matches,
)
from shoal.train._evaluation import game_seeds, interval_of_mean, interval_of_rate
from shoal.train._reporting import reporter
from shoal.train._scripted import ScriptedPlayer
from shoal.train._tasks.hockey_task import hockey_spaces
from tests.train.runs.small_runs import (
    HOCKEY,
    differences,
    last_state,
    make_config,
    network,
    train_run,
)


class SlotLength(gymnasium.Env):
    """Environment with episodes of k + 1 steps in slot k, whose return encodes slot and episode."""

    observation_space = spaces.Box(-1, 1e6, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.number, self.episode = seed, 0
        self.steps = 0
        self.episode += 1
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        over = self.steps > self.number
        reward = 1000.0 * self.number + self.episode if over else 0.0
        return np.zeros(1, np.float32), reward, over, False, {}


gymnasium.register("TrainSlotLength-v0", entry_point=SlotLength)


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture(scope="module")
def players():
    """Untrained agents of each kind."""
    return [
        make_agent(kind, hockey_spaces(), {"hidden_dim": [256, 256], **small}, seed=seed)
        for seed, (kind, small) in enumerate(
            [("DDDQN", {"buffer_size": 1}), ("SAC", {"buffer_size": 1}), ("PPO", {})]
        )
    ]


class ZeroPlayer:
    """A player that always chooses action 0."""

    def act_in_environment(self, states, deterministic=True):
        return np.zeros(len(states), np.int64)


def test_duration_of_two_hundred_games(players):
    play_matches(players[0], "weak", 10)
    start = time.perf_counter()
    assert len(play_matches(players[0], "weak", 200).winners) == 200
    elapsed = time.perf_counter() - start
    print(f"200 games took {elapsed:.2f} s")
    assert elapsed < 4.0  # about 0.5 s on an idle machine


@pytest.mark.parametrize("games", [1, 7, 200])
def test_every_game_counts_once(players, games):
    matches = play_matches(players[1], "strong", games, seed=4)
    assert [len(part) for part in matches] == [games] * 3
    assert sum(matches.counts) == games
    assert (matches.lengths >= 1).all()
    assert (matches.lengths <= 251).all()
    record = matches.record(12, "strong")
    assert (record.step, record.games) == (12, games)
    assert (record.wins, record.draws, record.losses) == matches.counts
    assert record.win_rate == record.wins / games
    assert record.low - 1e-12 <= record.win_rate <= record.high + 1e-12


def play_one_by_one(player, games, opponent, seed, mode="NORMAL"):
    """Play games one after the other, each in a separate vector."""
    results = []
    for number in range(games):
        with shoal.make(HOCKEY, 1, mode=mode, opponent=opponent) as envs:
            observations, _ = envs.reset(seed=[game_seeds(seed, games)[number]])
            reward, length, over = 0.0, 0, False
            while not over:
                actions = np.zeros((1, 8), np.float32)
                actions[:, :4] = player.act_in_environment(observations[:, 0])
                observations, rewards, terminated, truncated, infos = envs.step(actions)
                reward, length = reward + rewards[0], length + 1
                over = terminated[0] or truncated[0]
            results.append((int(infos["winner"][0, 0]), reward, length))
    return [np.array(part) for part in zip(*results, strict=True)]


@pytest.mark.parametrize(("opponent", "mode"), [("weak", "NORMAL"), ("strong", "TRAIN_DEFENSE")])
def test_parallel_games_equal_games_played_one_by_one(players, opponent, mode):
    games = 25
    matches = play_matches(players[1], opponent, games, seed=11, mode=mode)
    winners, rewards, lengths = play_one_by_one(players[1], games, opponent, 11, mode)
    # Networks round differently for a batch than for a single row, and games are chaotic.
    assert (matches.lengths == lengths).mean() > 0.8
    same = matches.lengths == lengths
    assert (matches.winners[same] == winners[same]).mean() > 0.9
    assert np.corrcoef(matches.rewards[same], rewards[same])[0, 1] > 0.9


def test_goal_counts_for_the_scoring_player():
    strong = ScriptedPlayer("strong", 0)
    matches = play_matches(strong, "none", 100, seed=1)
    wins, _, losses = matches.counts
    assert wins > 20
    assert losses < wins
    assert matches.rewards[matches.winners == 1].min() > 0  # the reward of a goal is 10
    assert matches.rewards[matches.winners == -1].max(initial=-10) < 0


def test_neither_side_has_an_advantage(players):
    wins, _, losses = play_matches(ScriptedPlayer("weak", 0), "weak", 1000, seed=1).counts
    assert abs(wins - losses) < 4 * math.sqrt(wins + losses)


def test_agents_play_against_each_other(players):
    matches = play_matches(players[1], players[2], 50, seed=0)
    swapped = play_matches(players[2], players[1], 50, seed=0)
    assert sum(matches.counts) == sum(swapped.counts) == 50
    again = play_matches(players[1], players[2], 50, seed=0)
    assert all(np.array_equal(*pair) for pair in zip(matches, again, strict=True))


def test_equal_seeds_give_equal_games(players):
    for player in players:
        first, again, other = (play_matches(player, "strong", 60, seed=s) for s in (3, 3, 4))
        assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
        assert not np.array_equal(first.lengths, other.lengths)


def test_more_games_than_slots(players, monkeypatch):
    whole = play_matches(players[1], "weak", 50, seed=5)
    monkeypatch.setattr(_evaluation, "_MAX_SLOTS", 20)
    parts = play_matches(players[1], "weak", 50, seed=5)
    assert len(parts.winners) == 50
    assert (whole.lengths == parts.lengths).mean() > 0.8  # equal seeds


def test_invalid_arguments(players):
    with pytest.raises(ValueError, match="games must be a positive number, got 0"):
        play_matches(players[0], "weak", 0)
    with pytest.raises(ValueError, match="second must be an agent, weak, strong or none"):
        play_matches(players[0], "medium", 3)
    with pytest.raises(ValueError, match="episodes must be a positive number, got 0"):
        play_episodes(ZeroPlayer(), "CartPole-v1", 0)
    with pytest.raises(ValueError, match="episodes must be a positive number, got -3"):
        play_episodes(ZeroPlayer(), "CartPole-v1", -3)


@pytest.mark.parametrize(
    ("successes", "count", "expected"),
    [
        (0, 10, (0.0, 0.2775)),
        (10, 10, (0.7225, 1.0)),
        (5, 10, (0.2366, 0.7634)),
        (81, 263, (0.2553, 0.3662)),  # Newcombe's example
        (15, 148, (0.0624, 0.1605)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_interval_of_rate_equals_published_values(successes, count, expected):
    assert interval_of_rate(successes, count) == pytest.approx(expected, abs=5e-5)


def test_interval_of_rate_equals_scipys():
    for count in (1, 2, 17, 200, 100_000):
        for successes in {0, 1, count // 3, count - 1, count}:
            expected = stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
            interval = interval_of_rate(successes, count)
            assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)
            assert 0 <= interval[0] < interval[1] <= 1


def test_interval_of_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    margin = 1.959964 * math.sqrt(5 / 3) / 2
    assert interval_of_mean(values) == pytest.approx((2.5 - margin, 2.5 + margin), abs=1e-5)
    assert interval_of_mean(np.array([7.0])) == (7.0, 7.0)


@pytest.mark.parametrize(("episodes", "num_envs"), [(1, 1), (10, 4), (12, 4), (3, 8), (7, None)])
def test_episodes_are_distributed_evenly_over_slots(episodes, num_envs, monkeypatch):
    """Slots with short episodes do not play more of them."""
    monkeypatch.setattr(_evaluation, "game_seeds", lambda seed, count: list(range(count)))
    returns, lengths = play_episodes(
        ZeroPlayer(),
        "TrainSlotLength-v0",
        episodes,
        num_envs=num_envs,
        arguments={"backend": "inline"},
    )
    assert len(returns) == len(lengths) == episodes
    slots, numbers = (returns // 1000).astype(int), (returns % 1000).astype(int)
    assert np.array_equal(lengths, slots + 1)
    count = min(episodes, num_envs or 64)
    for slot in range(count):
        share = episodes // count + (slot < episodes % count)
        assert sorted(numbers[slots == slot]) == list(range(1, share + 1))


def test_max_episode_steps_truncates_episodes():
    returns, lengths = play_episodes(ZeroPlayer(), "CartPole-v1", 30, max_episode_steps=5)
    assert (lengths == 5).all()
    assert (returns == 5).all()


def test_equal_seeds_give_equal_episodes():
    agent = make_agent("DDDQN", AgentSpaces(4, spaces.Discrete(2)), {"buffer_size": 1})
    first, again, other = (play_episodes(agent, "CartPole-v1", 40, seed=s)[0] for s in (1, 1, 99))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
def test_evaluation_frequency_does_not_affect_training(tmp_path, kind):
    phase = {"name": "only", "steps": 300}
    phase["opponent"] = {"type": "self_play", "deterministic": False}
    config = make_config(kind, HOCKEY, [phase], max_episode_steps=20)
    states = []
    for frequency in (60, 150, 10_000):
        train_run(config, tmp_path, str(frequency), num_envs=3, eval_freq_steps=frequency)
        state = last_state(tmp_path / str(frequency))
        for name in ("evaluator", "next_evaluation"):
            del state[name]
        states.append(state)
    assert not differences(states[0], states[1])
    assert not differences(states[0], states[2])


def test_evaluations_of_a_run_use_the_same_games(tmp_path):
    config = make_config("SAC", HOCKEY, steps=120, max_episode_steps=20, updates_per_step=0)
    result = train_run(config, tmp_path, eval_freq_steps=40, eval_num_games=20)
    weak = [record for record in result["evaluation_results"] if record["opponent"] == "weak"]
    assert len(weak) == 3
    for record in weak[1:]:
        assert record | {"step": 0} == weak[0] | {"step": 0}


def test_evaluation_opponents(tmp_path):
    config = make_config("SAC", HOCKEY, steps=40, max_episode_steps=20)
    both = train_run(config, tmp_path, "both")
    assert [record["opponent"] for record in both["evaluation_results"]] == ["weak", "strong"]
    for weak, name in ((True, "weak"), (False, "strong")):
        result = train_run(config, tmp_path, name, eval_weak_opponent=weak, eval_num_games=3)
        assert [record["opponent"] for record in result["evaluation_results"]] == [name]
        assert [record["games"] for record in result["evaluation_results"]] == [3]
    agent = tmp_path / "both" / "final.agent"
    config = make_config(
        "SAC", HOCKEY, steps=40, max_episode_steps=20, eval_opponents=[str(agent), "strong"]
    )
    records = train_run(config, tmp_path, "agent")["evaluation_results"]
    assert [record["opponent"] for record in records] == [str(agent), "strong"]
    assert network(agent)


def test_evaluation_uses_the_keep_mode_of_the_run(tmp_path, monkeypatch):
    phase = {"name": "only", "steps": 60, "environment": {"keep_mode": False}}
    train_run(make_config("DDDQN", HOCKEY, [phase]), tmp_path)
    keep_modes, play = [], _saved_agents.play_matches

    def recorded(*players, keep_mode, **options):
        keep_modes.append(keep_mode)
        return play(*players, keep_mode=keep_mode, **options)

    monkeypatch.setattr(_saved_agents, "play_matches", recorded)
    _saved_agents.evaluate_agent(tmp_path / "run", ["weak"], 2)
    _saved_agents.evaluate_agent(tmp_path / "run" / "final.agent", ["weak"], 2)
    shutil.copy(tmp_path / "run" / "final.agent", tmp_path / "alone.agent")
    _saved_agents.evaluate_agent(tmp_path / "alone.agent", ["weak"], 2)
    assert keep_modes == [False, False, True]
    filmed = []
    monkeypatch.setattr(_saved_agents, "film", lambda *_, **options: filmed.append(options))
    _saved_agents.film_agent(tmp_path / "run", None, "weak", 1)
    assert filmed[0]["keep_mode"] is False


def test_tournament_rejects_duplicate_players(tmp_path, monkeypatch):
    train_run(make_config("DDDQN", HOCKEY, steps=60), tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="two players or more, each once"):
        _saved_agents.play_tournament(["run", "./run/", "weak"], 2)
