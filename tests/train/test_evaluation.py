"""Evaluations: every game counts once, a seed says which games, and training is not disturbed."""

import math
import shutil
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy import stats

import shoal
from shoal.train import AgentSpaces, _evaluate, _evaluation, make_agent, play_episodes, play_matches
from shoal.train._evaluation import game_seeds, interval_of_mean, interval_of_rate
from shoal.train._reporting import reporter
from shoal.train._scripted import ScriptedPlayer
from shoal.train._tasks.hockey_task import hockey_spaces
from tests.train.runs.making import HOCKEY, differences, last_state, made_config, network, trained


class Lasting(gymnasium.Env):
    """Episodes of slot k last k + 1 steps, and give its number and that of the episode."""

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


gymnasium.register("TrainLasting-v0", entry_point=Lasting)


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture(scope="module")
def players():
    """Agents of each kind that have learnt nothing."""
    return [
        make_agent(kind, hockey_spaces(), {"hidden_dim": [256, 256], **small}, seed=seed)
        for seed, (kind, small) in enumerate(
            [("DDDQN", {"buffer_size": 1}), ("SAC", {"buffer_size": 1}), ("PPO", {})]
        )
    ]


class Idle:
    """Does nothing, in any environment with one number or choice."""

    def act_in_environment(self, states, deterministic=True):
        return np.zeros(len(states), np.int64)


def test_two_hundred_games_take_under_two_seconds(players):
    play_matches(players[0], "weak", 10)
    began = time.perf_counter()
    assert len(play_matches(players[0], "weak", 200).winners) == 200
    took = time.perf_counter() - began
    print(f"200 games took {took:.2f} s")
    assert took < 4.0  # here 0.5; other tests run at the same time


@pytest.mark.parametrize("games", [1, 7, 200])
def test_every_game_counts_once(players, games):
    found = play_matches(players[1], "strong", games, seed=4)
    assert [len(part) for part in found] == [games] * 3
    assert sum(found.counts) == games
    assert (found.lengths >= 1).all()
    assert (found.lengths <= 251).all()
    record = found.record(12, "strong")
    assert (record.step, record.games) == (12, games)
    assert (record.wins, record.draws, record.losses) == found.counts
    assert record.win_rate == record.wins / games
    assert record.low - 1e-12 <= record.win_rate <= record.high + 1e-12


def by_hand(player, games, opponent, seed, mode="NORMAL"):
    """One game after the other, each in an environment of its own."""
    found = []
    for number in range(games):
        with shoal.make(HOCKEY, 1, mode=mode, opponent=opponent) as envs:
            seen, _ = envs.reset(seed=[game_seeds(seed, games)[number]])
            reward, length, over = 0.0, 0, False
            while not over:
                actions = np.zeros((1, 8), np.float32)
                actions[:, :4] = player.act_in_environment(seen[:, 0])
                seen, gained, terminated, truncated, infos = envs.step(actions)
                reward, length = reward + gained[0], length + 1
                over = terminated[0] or truncated[0]
            found.append((int(infos["winner"][0, 0]), reward, length))
    return [np.array(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize(("opponent", "mode"), [("weak", "NORMAL"), ("strong", "TRAIN_DEFENSE")])
def test_games_are_those_that_are_played_one_by_one(players, opponent, mode):
    games = 25
    found = play_matches(players[1], opponent, games, seed=11, mode=mode)
    winners, rewards, lengths = by_hand(players[1], games, opponent, 11, mode)
    # Rows of a batch are not added up in the same order as a single one, and games are chaotic.
    assert (found.lengths == lengths).mean() > 0.8
    same = found.lengths == lengths
    assert (found.winners[same] == winners[same]).mean() > 0.9
    assert np.corrcoef(found.rewards[same], rewards[same])[0, 1] > 0.9


def test_a_goal_is_counted_for_who_has_shot_it():
    strong = ScriptedPlayer("strong", 0)
    found = play_matches(strong, "none", 100, seed=1)
    wins, _, losses = found.counts
    assert wins > 20
    assert losses < wins
    assert found.rewards[found.winners == 1].min() > 0  # a goal is worth 10
    assert found.rewards[found.winners == -1].max(initial=-10) < 0


def test_both_sides_are_alike(players):
    """Whoever is first has no advantage."""
    ahead = play_matches(ScriptedPlayer("weak", 0), "weak", 1000, seed=1).counts
    assert abs(ahead[0] - ahead[2]) < 4 * math.sqrt(ahead[0] + ahead[2])


def test_agents_play_against_each_other(players):
    found = play_matches(players[1], players[2], 50, seed=0)
    turned = play_matches(players[2], players[1], 50, seed=0)
    assert sum(found.counts) == sum(turned.counts) == 50
    again = play_matches(players[1], players[2], 50, seed=0)
    assert all(np.array_equal(*pair) for pair in zip(found, again, strict=True))


def test_the_same_seed_is_the_same_games(players):
    for player in players:
        first, again, other = (play_matches(player, "strong", 60, seed=s) for s in (3, 3, 4))
        assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
        assert not np.array_equal(first.lengths, other.lengths)


def test_more_games_than_there_are_slots(players, monkeypatch):
    whole = play_matches(players[1], "weak", 50, seed=5)
    monkeypatch.setattr(_evaluation, "_MOST_SLOTS", 20)
    parts = play_matches(players[1], "weak", 50, seed=5)
    assert len(parts.winners) == 50
    assert (whole.lengths == parts.lengths).mean() > 0.8  # the same seeds


def test_what_cannot_be_played(players):
    with pytest.raises(ValueError, match="games must be a positive number, got 0"):
        play_matches(players[0], "weak", 0)
    with pytest.raises(ValueError, match="an opponent is an agent, weak, strong or none"):
        play_matches(players[0], "medium", 3)
    with pytest.raises(ValueError, match="episodes must be a positive number, got 0"):
        play_episodes(Idle(), "CartPole-v1", 0)
    with pytest.raises(ValueError, match="episodes must be a positive number, got -3"):
        play_episodes(Idle(), "CartPole-v1", -3)


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
def test_intervals_of_rates_are_those_of_tables(successes, count, expected):
    assert interval_of_rate(successes, count) == pytest.approx(expected, abs=5e-5)


def test_intervals_of_rates_are_those_of_scipy():
    for count in (1, 2, 17, 200, 100_000):
        for successes in {0, 1, count // 3, count - 1, count}:
            wanted = stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
            found = interval_of_rate(successes, count)
            assert found == pytest.approx((wanted.low, wanted.high), abs=1e-9)
            assert 0 <= found[0] < found[1] <= 1


def test_intervals_of_means():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    reach = 1.959964 * math.sqrt(5 / 3) / 2
    assert interval_of_mean(values) == pytest.approx((2.5 - reach, 2.5 + reach), abs=1e-5)
    assert interval_of_mean(np.array([7.0])) == (7.0, 7.0)


@pytest.mark.parametrize(("episodes", "num_envs"), [(1, 1), (10, 4), (12, 4), (3, 8), (7, None)])
def test_episodes_are_as_many_as_were_asked_for_in_fair_shares(episodes, num_envs, monkeypatch):
    """Slots whose episodes are short do not have more of them."""
    monkeypatch.setattr(_evaluation, "game_seeds", lambda seed, count: list(range(count)))
    returns, lengths = play_episodes(
        Idle(), "TrainLasting-v0", episodes, num_envs=num_envs, arguments={"backend": "inline"}
    )
    assert len(returns) == len(lengths) == episodes
    slots, numbers = (returns // 1000).astype(int), (returns % 1000).astype(int)
    assert np.array_equal(lengths, slots + 1)
    count = min(episodes, num_envs or 64)
    for slot in range(count):
        share = episodes // count + (slot < episodes % count)
        assert sorted(numbers[slots == slot]) == list(range(1, share + 1))


def test_long_episodes_are_cut():
    returns, lengths = play_episodes(Idle(), "CartPole-v1", 30, max_episode_steps=5)
    assert (lengths == 5).all()
    assert (returns == 5).all()


def test_the_same_seed_is_the_same_episodes():
    agent = make_agent("DDDQN", AgentSpaces(4, spaces.Discrete(2)), {"buffer_size": 1})
    first, again, other = (play_episodes(agent, "CartPole-v1", 40, seed=s)[0] for s in (1, 1, 99))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
def test_how_often_it_is_evaluated_does_not_change_what_is_learnt(tmp_path, kind):
    phase = {"name": "only", "steps": 300}
    phase["opponent"] = {"type": "self_play", "deterministic": False}
    config = made_config(kind, HOCKEY, [phase], max_episode_steps=20)
    states = []
    for often in (60, 150, 10_000):
        trained(config, tmp_path, str(often), num_envs=3, eval_freq_steps=often)
        state = last_state(tmp_path / str(often))
        for name in ("judge", "next_evaluation"):
            del state[name]
        states.append(state)
    assert not differences(states[0], states[1])
    assert not differences(states[0], states[2])


def test_evaluations_are_of_the_same_games(tmp_path):
    """What is better in one is not luckier."""
    config = made_config("SAC", HOCKEY, steps=120, max_episode_steps=20, updates_per_step=0)
    found = trained(config, tmp_path, eval_freq_steps=40, eval_num_games=20)["evaluation_results"]
    weak = [record for record in found if record["opponent"] == "weak"]
    assert len(weak) == 3
    for record in weak[1:]:
        assert record | {"step": 0} == weak[0] | {"step": 0}


def test_evaluations_are_played_against_whom_it_is_said(tmp_path):
    config = made_config("SAC", HOCKEY, steps=40, max_episode_steps=20)
    both = trained(config, tmp_path, "both")
    assert [record["opponent"] for record in both["evaluation_results"]] == ["weak", "strong"]
    for weak, name in ((True, "weak"), (False, "strong")):
        found = trained(config, tmp_path, name, eval_weak_opponent=weak, eval_num_games=3)
        assert [record["opponent"] for record in found["evaluation_results"]] == [name]
        assert [record["games"] for record in found["evaluation_results"]] == [3]
    agent = tmp_path / "both" / "final.agent"
    config = made_config(
        "SAC", HOCKEY, steps=40, max_episode_steps=20, eval_opponents=[str(agent), "strong"]
    )
    found = trained(config, tmp_path, "agent")["evaluation_results"]
    assert [record["opponent"] for record in found] == [str(agent), "strong"]
    assert network(agent)


def test_a_run_is_evaluated_by_the_rules_it_was_trained_by(tmp_path, monkeypatch):
    """Whether rackets keep the puck."""
    phase = {"name": "only", "steps": 60, "environment": {"keep_mode": False}}
    trained(made_config("DDDQN", HOCKEY, [phase]), tmp_path)
    rules, play = [], _evaluate.play_matches

    def played(*players, keep_mode, **options):
        rules.append(keep_mode)
        return play(*players, keep_mode=keep_mode, **options)

    monkeypatch.setattr(_evaluate, "play_matches", played)
    _evaluate.evaluate_agent(tmp_path / "run", ["weak"], 2)
    _evaluate.evaluate_agent(tmp_path / "run" / "final.agent", ["weak"], 2)
    shutil.copy(tmp_path / "run" / "final.agent", tmp_path / "alone.agent")
    _evaluate.evaluate_agent(tmp_path / "alone.agent", ["weak"], 2)
    assert rules == [False, False, True]
    filmed = []
    monkeypatch.setattr(_evaluate, "film", lambda *_, **options: filmed.append(options))
    _evaluate.film_agent(tmp_path / "run", None, "weak", 1)
    assert filmed[0]["keep_mode"] is False


def test_nobody_plays_a_tournament_against_themselves(tmp_path, monkeypatch):
    trained(made_config("DDDQN", HOCKEY, steps=60), tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="two players or more, each once"):
        _evaluate.play_tournament(["run", "./run/", "weak"], 2)
