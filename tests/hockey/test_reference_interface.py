"""Compatibility with code written for the reference environment."""

import copy
import pickle
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import shoal.hockey as h_env
from shoal.errors import KernelError, SlotFinishedError
from shoal.hockey import BasicOpponent, HockeyEnv, HockeyEnv_BasicOpponent, Mode
from tests.hockey.recording import recording


@pytest.fixture
def env():
    made = HockeyEnv()
    yield made
    made.close()


def test_loop_of_a_course_project(env):
    """The code of such projects, except for the import."""
    player1 = h_env.BasicOpponent()
    player2 = h_env.BasicOpponent(weak=False)
    obs, info = env.reset()
    obs_agent2 = env.obs_agent_two()
    for _ in range(600):
        a1 = player1.act(obs)
        a2 = player2.act(obs_agent2)
        obs, r, d, t, info = env.step(np.hstack([a1, a2]))
        obs_agent2 = env.obs_agent_two()
        info2 = env.get_info_agent_two()
        r2 = env.get_reward_agent_two(info2)
        assert isinstance(r, float)
        assert isinstance(r2, float)
        if d or t:
            break
    assert d or env.time == 251
    assert obs in env.observation_space
    assert obs_agent2 in env.observation_space
    assert info["winner"] == -info2["winner"] == env.winner
    assert set(info) == {
        "winner",
        "reward_closeness_to_puck",
        "reward_touch_puck",
        "reward_puck_direction",
    }


def test_basic_opponent_environment():
    env = h_env.HockeyEnv_BasicOpponent(mode=Mode.NORMAL, weak_opponent=True)
    assert env.action_space == spaces.Box(-1, 1, (4,), np.float32)

    def match(seed):
        rows, over = [env.reset(seed=seed)[0]], False
        random = np.random.default_rng(seed)
        while not over:
            row, _, terminated, truncated, _ = env.step(random.uniform(-1, 1, 4))
            rows.append(row)
            over = terminated or truncated
        return np.array(rows)

    first, second = match(3), match(4)
    assert np.array_equal(match(3), first)  # including the opponent's random numbers
    assert not np.array_equal(first[:20], second[:20])
    env.close()


@pytest.mark.parametrize("keep_mode", [True, False])
@pytest.mark.parametrize("made", [HockeyEnv, HockeyEnv_BasicOpponent])
def test_observations_and_actions_are_in_their_spaces(made, keep_mode):
    env = made(keep_mode=keep_mode)
    players = 2 if made is HockeyEnv else 1
    numbers = 4 if keep_mode else 3
    assert env.action_space.shape == (players * numbers,)
    assert env.discrete_action_space.n == (8 if keep_mode else 7)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.step(env.action_space.sample())[0] in env.observation_space
    check_env(env, skip_render_check=True)
    env.close()


def test_positional_arguments():
    env = HockeyEnv(False, Mode.TRAIN_DEFENSE)
    assert (env.keep_mode, env.mode, env.max_timesteps) == (False, Mode.TRAIN_DEFENSE, 80)
    env.close()
    env = HockeyEnv(mode="TRAIN_SHOOTING", keep_mode=True, verbose=False)
    assert env.mode is Mode.TRAIN_SHOOTING
    env.close()
    with pytest.raises(ValueError, match="mode must be one of"):
        HockeyEnv(mode="PRACTICE")


def test_resets(env):
    sides = [np.sign(env.reset(one_starting=one)[0][12]) for one in (True, False, None, None)]
    assert sides == [-1, 1, -1, 1]
    assert env.max_timesteps == 250
    env.reset(mode=Mode.TRAIN_SHOOTING)
    assert (env.mode, env.max_timesteps) == (Mode.TRAIN_SHOOTING, 80)
    env.reset()
    assert env.mode is Mode.TRAIN_SHOOTING  # until another mode is set
    env.reset(options={"mode": "NORMAL", "one_starting": True})
    assert env.mode is Mode.NORMAL
    first = env.reset(seed=5)[0], env.reset()[0], env.reset()[0]
    second = env.reset(seed=5)[0], env.reset()[0], env.reset()[0]
    assert np.array_equal(first, second)
    assert env.np_random_seed == 5
    assert env.seed(7) == [7]


def test_both_players_observe_the_same_match(env):
    env.reset(seed=1)
    for _ in range(30):
        one, *_ = env.step(env.action_space.sample())
        two = env.obs_agent_two()
        turned = np.array([-1, -1, 1, -1, -1, 1])
        assert np.array_equal(two[:6], turned * one[6:12])
        assert np.array_equal(two[6:12], turned * one[:6])
        assert np.array_equal(two[12:16], -one[12:16])
        assert np.array_equal(two[16:], one[[17, 16]])


def test_time_limit_is_a_truncation(env):
    env.reset(seed=0)
    for step in range(251):
        *_, terminated, truncated, info = env.step(np.zeros(8))
        assert not terminated
        assert truncated == (step == 250)
    assert info["winner"] == 0
    with pytest.raises(SlotFinishedError, match="the episode is over, call reset first"):
        env.step(np.zeros(8))


def test_set_state(env):
    gold = recording()
    env.reset(seed=0)
    for row in range(40, 170):
        env.set_state(gold.obs[row], gold.puck_spin[row])
        two = env.obs_agent_two()
        assert np.allclose(two, gold.next_obs_two[row - 1], atol=1e-5)
        observation, *_ = env.step(gold.action[row])
        assert np.abs(observation - gold.next_obs[row]).max() < 1e-3


def test_consecutive_transitions_of_the_recording(env):
    """Spin and touches, which observations do not contain, are kept between steps."""
    gold = recording()
    over, worst = True, []
    for row in range(len(gold.t)):
        if over or gold.t[row] <= 1:
            env.reset(mode=int(gold.mode[row]))
        env.set_state(gold.obs[row])
        observation, _, terminated, truncated, info = env.step(gold.action[row])
        over = terminated or truncated
        assert info["winner"] == gold.winner[row]
        assert np.array_equal(observation[16:], gold.next_obs[row, 16:])
        worst.append(np.abs(observation - gold.next_obs[row]).max())
    assert np.percentile(worst, 99) < 1e-2


def test_set_state_after_the_end_of_an_episode(env):
    seen, _ = env.reset(seed=0)
    goal = seen.copy()
    goal[12:16] = (4.0, 0.0, 1.0, 0.0)
    for _ in range(2):
        env.set_state(goal)
        *_, terminated, _, info = env.step(np.zeros(8))
        assert terminated
        assert info["winner"] == env.winner == 1
    with pytest.raises(ValueError, match=r"state must have shape \(18,\), got \(16,\)"):
        env.set_state(np.zeros(16))
    with pytest.raises(ValueError, match="state must have absolute values below 1000"):
        env.set_state(np.full(18, np.nan))


def test_possession(env):
    seen, _ = env.reset(seed=0)
    seen[12:16] = (-2.6, 0.0, -2.0, 0.0)  # approaching the first player's racket
    env.set_state(seen)
    touched, kept = [], []
    for _ in range(25):
        observation, *_, info = env.step(np.zeros(8))
        touched.append(info["reward_touch_puck"])
        kept.append(env.player1_has_puck)
    assert sum(touched) == 1
    start = kept.index(15)
    assert kept[start : start + 15] == [*range(15, 1, -1), 0]
    assert env.player2_has_puck == 0
    assert observation[14] > 10  # it was shot


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        (0, [0, 0, 0, 0]),
        (1, [-1, 0, 0, 0]),
        (2, [1, 0, 0, 0]),
        (3, [0, -1, 0, 0]),
        (4, [0, 1, 0, 0]),
        (5, [0, 0, -1, 0]),
        (6, [0, 0, 1, 0]),
        (7, [0, 0, 0, 1]),
    ],
)
def test_discrete_actions(env, choice, numbers):
    assert list(env.discrete_to_continous_action(choice)) == numbers
    env.reset(seed=2)
    expected, *_ = env.step(np.hstack([numbers, numbers]))
    discrete = gymnasium.make("shoal/HockeyDiscrete-v0")
    discrete.reset(seed=2)
    found, *_ = discrete.step(np.array([choice, choice]))
    assert np.array_equal(found[0], expected)
    discrete.close()


def test_invalid_actions(env):
    env.reset(seed=0)
    with pytest.raises(ValueError, match="must be from 0 to 7, got 8"):
        env.discrete_to_continous_action(8)
    without = HockeyEnv(keep_mode=False)
    with pytest.raises(ValueError, match="must be from 0 to 6, got 7"):
        without.discrete_to_continous_action(7)
    assert len(without.discrete_to_continous_action(3)) == 3
    without.close()
    with pytest.raises(ValueError, match=r"action must have shape \(8,\), got \(6,\); discrete"):
        env.step(np.zeros(6))
    with pytest.raises(KernelError, match="not a finite number"):
        env.step(np.full(8, np.nan))


def test_invalid_actions_with_basic_opponent():
    env = HockeyEnv_BasicOpponent()
    env.reset(seed=0)
    for wrong in (np.zeros(8), 3, [[0.0] * 4]):
        with pytest.raises(ValueError, match=r"action must have shape \(4,\), got"):
            env.step(wrong)
    for wrong in (None, "left"):
        with pytest.raises(ValueError, match="action must"):
            env.step(wrong)
    env.opponent = SimpleNamespace(act=lambda _: [1.0, 0.0, 0.0, 0.0])  # a user-defined opponent
    env.reset(seed=1)
    seen, *_ = env.step([0.0] * 4)
    assert seen[9] < 0
    env.close()


def test_default_strength_of_opponents():
    assert BasicOpponent().weak
    assert not HockeyEnv_BasicOpponent().opponent.weak


def test_new_mode_takes_effect_with_the_next_reset(env):
    env.mode = Mode.TRAIN_SHOOTING
    assert (env.mode, env.max_timesteps) == (Mode.TRAIN_SHOOTING, 250)
    env.reset()
    assert env.max_timesteps == 80
    for _ in range(81):
        *_, truncated, _ = env.step(np.zeros(8))
    assert truncated
    env.reset(mode="NORMAL", options={"mode": "TRAIN_DEFENSE"})
    assert (env.mode, env.max_timesteps) == (Mode.NORMAL, 250)


def test_subclass_overrides_rewards():
    class Sparse(HockeyEnv):
        def get_reward(self, info):
            return 1000.0 + info["winner"]

    env = Sparse()
    _, reward, *_ = env.step(np.zeros(8))  # the constructor has reset it
    assert reward == 1000.0
    assert env.get_reward_agent_two(env.get_info_agent_two()) <= 0
    env.close()


def test_bodies_and_constants(env):
    seen, _ = env.reset(seed=1)
    assert (h_env.W, h_env.H, h_env.CENTER_X, h_env.CENTER_Y) == (10, 8, 5, 4)
    assert env.player1.position == (2.0, 4.0)
    assert env.player2.position.x == 8.0
    assert env.puck.position.x == pytest.approx(seen[12] + h_env.CENTER_X)
    env.step(np.ones(8))
    assert env.player1.linearVelocity.x > 0 > env.player2.linearVelocity.x
    assert env.player1.angularVelocity == env.player2.angularVelocity > 0
    assert env.player1.angle > 0


def test_invalid_states(env):
    seen, _ = env.reset(seed=0)
    for place, value, message in [
        (16, 2.5, "integers from 0 to 15"),
        (17, -3, "integers from 0 to 15"),
        (16, 16, "integers from 0 to 15"),
        (2, 1e12, "state must have absolute values below"),
    ]:
        wrong = seen.copy()
        wrong[place] = value
        with pytest.raises(ValueError, match=message):
            env.set_state(wrong)
    with pytest.raises(ValueError, match="puck_spin must have an absolute value below 1000"):
        env.set_state(seen, puck_spin=np.nan)
    without = HockeyEnv(keep_mode=False)
    seen[16] = 3
    with pytest.raises(ValueError, match="integers from 0 to 0"):
        without.set_state(seen)
    without.close()


def test_environment_is_usable_after_a_failed_step(env):
    seen, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match=r"shape \(8,\), got \(7,\)"):
        env.step(np.zeros(7))
    env.step(np.zeros(8))
    with pytest.raises(KernelError, match="not a finite number"):
        env.step(np.full(8, np.nan))
    env.set_state(seen)
    env.step(np.zeros(8))


def test_environments_and_players_can_be_copied():
    env = HockeyEnv_BasicOpponent(mode="TRAIN_SHOOTING")
    env.reset(seed=3)
    env.step(np.zeros(4))
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        saved = copy.deepcopy(env)
        for _ in range(20):
            assert np.array_equal(twin.step(np.ones(4))[0], saved.step(np.ones(4))[0])
        twin.close()
        saved.close()
    env.close()
    player = BasicOpponent(weak=False, seed=1)
    player.act(np.zeros(18))
    twin = pickle.loads(pickle.dumps(player))
    assert np.array_equal(twin.act(np.zeros(18)), player.act(np.zeros(18)))
