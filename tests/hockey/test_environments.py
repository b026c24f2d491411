"""Hockey environments made by Gymnasium and ``shoal.make``."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import shoal
from shoal.errors import KernelError
from shoal.hockey import Mode
from shoal.testing import assert_identical

NAMES = [
    "shoal/Hockey-v0",
    "shoal/HockeyDiscrete-v0",
    "shoal/HockeyOne-v0",
    "shoal/HockeyOneDiscrete-v0",
]
ACTIONS = {
    "shoal/Hockey-v0": (spaces.Box(-1, 1, (8,)), spaces.Box(-1, 1, (6,))),
    "shoal/HockeyDiscrete-v0": (spaces.MultiDiscrete([8, 8]), spaces.MultiDiscrete([7, 7])),
    "shoal/HockeyOne-v0": (spaces.Box(-1, 1, (4,)), spaces.Box(-1, 1, (3,))),
    "shoal/HockeyOneDiscrete-v0": (spaces.Discrete(8), spaces.Discrete(7)),
}


@pytest.mark.parametrize("keep_mode", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_observations_and_actions_are_in_their_spaces(name, keep_mode):
    seen = (18,) if "One" in name else (2, 18)
    with shoal.make(name, 3, keep_mode=keep_mode) as envs:
        assert envs.single_action_space == ACTIONS[name][0 if keep_mode else 1]
        assert envs.single_observation_space == spaces.Box(-np.inf, np.inf, seen, np.float32)
        observations, infos = envs.reset(seed=1)
        results = envs.step(envs.action_space.sample())
        for batch in (observations, results[0]):
            assert batch in envs.observation_space
        for step_infos in (infos, results[4]):
            assert set(step_infos) >= {
                "winner",
                "reward_closeness_to_puck",
                "reward_touch_puck",
                "reward_puck_direction",
            }
            assert step_infos["winner"].shape == ((3,) if "One" in name else (3, 2))


@pytest.mark.parametrize("name", NAMES)
def test_single_environment_passes_gymnasium_checks(name):
    env = gymnasium.make(name)
    check_env(env.unwrapped, skip_render_check=True)
    with shoal.make(name, 2) as envs:
        expected, _ = envs.reset(seed=[3, 4])
        observation, _ = env.reset(seed=3)
        assert_identical(observation, expected[0])
        envs.action_space.seed(5)
        for _ in range(30):
            actions = envs.action_space.sample()
            result, batch = env.step(actions[0]), envs.step(actions)
            for one, many in zip(result[:4], batch[:4], strict=True):
                assert np.array_equal(one, many[0])
    env.close()


@pytest.mark.parametrize("name", NAMES)
def test_make_vec(name):
    ours = shoal.make(name, 4, mode="TRAIN_DEFENSE")
    theirs = gymnasium.make_vec(name, 4, mode="TRAIN_DEFENSE")
    with ours, theirs:
        assert_identical(ours.reset(seed=2)[0], theirs.reset(seed=2)[0])
        actions = ours.action_space.sample()
        assert_identical(ours.step(actions)[:4], theirs.step(actions)[:4])


def test_python_backend_plays_the_same_matches():
    name, count = "shoal/HockeyOne-v0", 3
    with (
        shoal.make(name, count, opponent="weak") as kernel,
        shoal.make(name, count, opponent="weak", backend="inline") as python,
    ):
        assert_identical(kernel.reset(seed=9)[0], python.reset(seed=9)[0])
        for _ in range(260):
            actions = kernel.action_space.sample()
            assert_identical(kernel.step(actions)[:4], python.step(actions)[:4])


def test_each_slot_has_its_mode_opponent_and_keep_mode():
    with shoal.make("shoal/Hockey-v0", 4) as envs:
        envs.set_attr("mode", [Mode.NORMAL, "TRAIN_SHOOTING", 2, np.int64(0)])
        envs.set_attr("opponent", [None, "weak", "strong", None])
        envs.set_attr("keep_mode", [True, False, True, True])
        modes = (Mode.NORMAL, Mode.TRAIN_SHOOTING, Mode.TRAIN_DEFENSE, Mode.NORMAL)
        assert envs.get_attr("mode") == modes
        assert envs.get_attr("opponent") == (None, "weak", "strong", None)
        assert envs.get_attr("keep_mode") == (True, False, True, True)
        envs.reset(seed=0)
        lengths, ends = np.zeros(4, int), np.zeros(4, int)
        for step in range(1, 252):
            *_, terminated, truncated, _ = envs.step(np.zeros((4, 8), np.float32))
            ended = (terminated | truncated) & (ends == 0)
            lengths[ended] = step
            ends[ended] = 1 + truncated[ended]
        assert lengths[0] == lengths[3] == 251
        assert lengths[1] <= 81
        assert lengths[2] <= 81
        assert set(ends) <= {1, 2}
        assert ends[0] == 2


def test_new_mode_takes_effect_with_the_next_reset():
    with shoal.make("shoal/Hockey-v0", 2, mode="TRAIN_SHOOTING") as envs:
        envs.reset(seed=0)
        envs.set_attr("mode", "NORMAL")
        for _ in range(81):
            *_, truncated, _ = envs.step(np.zeros((2, 8)))
        assert truncated.all()  # the episode still has the limit of its initial mode
        observations, *_ = envs.step(np.zeros((2, 8)))
        assert_identical(observations[:, 0, 6:8], np.array([[3, 0], [3, 0]], np.float32))


def test_scripted_opponent_overrides_actions():
    def run(actions, **options):
        with shoal.make("shoal/Hockey-v0", 2, **options) as envs:
            observations, _ = envs.reset(seed=4)
            for _ in range(20):
                observations, *_ = envs.step(np.tile(np.float32(actions), (2, 1)))
            return observations

    still, pushing = [0.0] * 8, [0.0] * 4 + [1.0] * 4
    assert not np.array_equal(run(still), run(pushing))
    assert np.array_equal(run(still, opponent="strong"), run(pushing, opponent="strong"))
    assert not np.array_equal(run(still, opponent="weak"), run(still, opponent="strong"))


def test_players_start_alternately():
    with shoal.make("shoal/Hockey-v0", 3, autoreset_mode="Disabled") as envs:
        sides = []
        envs.reset(seed=0)
        for _ in range(4):
            observations, _ = envs.reset()
            sides.append(np.sign(observations[:, 0, 12]))
        assert_identical(np.array(sides)[::2], np.array([sides[0]] * 2))
        assert_identical(np.array(sides)[1::2], -np.array([sides[0]] * 2))
        for one_starting, side in ((True, -1), (False, 1), (None, -1)):
            observations, _ = envs.reset(options={"one_starting": one_starting})
            assert (np.sign(observations[:, 0, 12]) == side).all()
        # A seeded reset does not depend on earlier episodes.
        first, _ = envs.reset(seed=8)
        envs.reset()
        again, _ = envs.reset(seed=8)
        assert_identical(first, again)


def test_mode_for_one_episode():
    with shoal.make("shoal/Hockey-v0", 2, autoreset_mode="Disabled") as envs:
        envs.reset(seed=0, options={"mode": "TRAIN_SHOOTING"})
        for _ in range(81):
            *_, truncated, _ = envs.step(np.zeros((2, 8)))
        assert truncated.all()
        assert envs.get_attr("mode") == (Mode.NORMAL, Mode.NORMAL)
        observations, _ = envs.reset()
        assert_identical(observations[:, 0, 6], np.array([3, 3], np.float32))


@pytest.mark.parametrize("mode", list(Mode))
def test_initial_states_are_as_specified(mode):
    count = 4000
    with shoal.make("shoal/Hockey-v0", count, mode=mode) as envs:
        observations, _ = envs.reset(seed=100)
        first = observations[:, 0]
        assert (first[:, [1, 2, 3, 4, 5, 8, 9, 10, 11, 14, 15, 16, 17]] == 0).all()
        assert (first[:, 0] == -3).all()
        if mode == Mode.NORMAL:
            assert (first[:, 6] == 3).all()
            assert (first[:, 7] == 0).all()
        else:
            _check_uniform(first[:, 6], 3 - 10 / 3, 3 + 5 / 3)
            _check_uniform(first[:, 7], -2, 2)
        if mode == Mode.TRAIN_DEFENSE:
            _check_uniform(first[:, 12], 0, 10 / 3)
            _check_uniform(first[:, 13], -3.2, 3.2)
            shot = envs.state["shot"]
            assert np.allclose(np.hypot(*shot.T), 60, rtol=1e-6)
            # The position at which the shot crosses the goal line of the first player.
            share = (-5 - first[:, 12]) / shot[:, 0]
            _check_uniform(first[:, 13] + share * shot[:, 1], -0.75, 0.75)
        else:
            # The first starter is random.
            starts = np.sign(first[:, 12])
            assert np.mean(starts) == pytest.approx(0 if mode == Mode.NORMAL else -1, abs=0.05)
            _check_uniform(starts * first[:, 12], 1, 2)
            _check_uniform(first[:, 13], -1, 1)


def _check_uniform(values, low, high):
    assert values.min() >= low - 1e-4
    assert values.max() <= high + 1e-4
    expected = np.linspace(low, high, 11)[1:-1]
    shares = (values[:, None] <= expected).mean(0)
    assert np.abs(shares - np.arange(1, 10) / 10).max() < 0.04


def test_reset_clears_the_state():
    """Possession is also cleared, unlike in the reference."""
    with shoal.make("shoal/Hockey-v0", 64, opponent="strong") as envs:
        fresh, _ = envs.reset(seed=1, options={"one_starting": False})
        states = envs.state.copy()
        caught = np.zeros(64, bool)
        for _ in range(60):
            observations, *_ = envs.step(np.zeros((64, 8), np.float32))
            caught |= observations[:, 0, 16:].any(1)
        assert caught.any()
        again, _ = envs.reset(seed=1, options={"one_starting": False})
        assert_identical(again, fresh)
        for name in states.dtype.names:
            assert_identical(envs.state[name], states[name])
        others, _ = envs.reset()
        assert not others[:, :, 16:].any()
        assert not envs.state["puck_spin"].any()
        assert not envs.state["touching"].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_every_episode_ends(name, mode):
    with shoal.make(name, 40, autoreset_mode=mode, mode="TRAIN_SHOOTING", statistics=True) as envs:
        envs.reset(seed=3)
        envs.action_space.seed(3)
        by_time, by_goal = 0, 0
        for _ in range(200):
            *_, terminated, truncated, infos = envs.step(envs.action_space.sample())
            ended = terminated | truncated
            assert not (terminated & truncated).any()
            if not ended.any():
                continue
            step_infos = infos["final_info"] if mode == "SameStep" else infos
            winners = np.reshape(step_infos["winner"], (40, -1))[:, 0]
            assert (np.abs(winners[ended]) == terminated[ended]).all()
            lengths = infos["episode"]["l"]
            assert (lengths[truncated] == 81).all()
            assert (lengths[terminated] <= 81).all()
            by_time, by_goal = by_time + truncated.sum(), by_goal + terminated.sum()
            if mode == "Disabled":
                envs.reset(options={"reset_mask": ended})
        assert by_time > 20
        assert by_goal > 0


def test_goal_in_the_last_step_is_a_termination():
    with shoal.make("shoal/Hockey-v0", 1, autoreset_mode="Disabled") as envs:
        envs.reset(seed=0)
        envs.state["observation"][0, 12:16] = (4.0, 0.0, 1.0, 0.0)
        envs.state["time"] = 250
        _, rewards, terminated, truncated, infos = envs.step(np.zeros((1, 8)))
        assert (terminated[0], truncated[0]) == (True, False)
        assert infos["winner"].tolist() == [[1, -1]]
        closeness = infos["reward_closeness_to_puck"][0]
        assert closeness[0] == 0 > closeness[1]
        assert infos["rewards"].tolist() == [[10.0, -10.0 + closeness[1]]]
        assert rewards.tolist() == [10.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "SHOOTING"}, "mode must be one of NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE"),
        ({"mode": 3}, "mode must be one of"),
        ({"mode": True}, "mode must be one of"),
        ({"mode": 1.0}, "mode must be one of"),
        ({"opponent": "average"}, "opponent must be 'weak', 'strong' or None, got 'average'"),
        ({"keep_mode": "yes"}, "keep_mode must be True or False, got 'yes'"),
    ],
)
def test_invalid_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        shoal.make("shoal/Hockey-v0", 2, **arguments)
    with shoal.make("shoal/Hockey-v0", 2) as envs:
        for name, value in arguments.items():
            with pytest.raises(ValueError, match=message):
                envs.set_attr(name, value)


def test_id_without_version_has_a_kernel():
    with pytest.warns(UserWarning, match="latest versioned"), shoal.make("shoal/Hockey", 2) as envs:
        assert envs.plan.backend == "kernel"


def test_list_of_modes_raises_and_suggests_set_attr():
    with pytest.raises(ValueError, match="set_attr accepts a list with a value for each slot"):
        shoal.make("shoal/HockeyOne-v0", 2, mode=["NORMAL", "TRAIN_SHOOTING"])


def test_invalid_reset_options():
    with shoal.make("shoal/Hockey-v0", 2) as envs:
        with pytest.raises(ValueError, match="hockey has no reset option 'starter'"):
            envs.reset(options={"starter": 1})
        with pytest.raises(ValueError, match="one_starting must be True or False, got 3"):
            envs.reset(options={"one_starting": 3})
        with pytest.raises(ValueError, match="mode must be one of"):
            envs.reset(options={"mode": "FUN"})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_action_raises(value):
    with shoal.make("shoal/Hockey-v0", 12) as envs:
        envs.reset(seed=0)
        actions = np.zeros((12, 8), np.float32)
        actions[9, 5] = value
        with pytest.raises(KernelError, match=r"slot 9.*an action is not a finite number"):
            envs.step(actions)
        # The other slots have stepped, and the failed slot is reset.
        observations, *_ = envs.step(np.zeros((12, 8), np.float32))
        assert np.isfinite(observations).all()


def test_actions_are_clipped_to_their_bounds():
    with shoal.make("shoal/Hockey-v0", 2) as envs:
        envs.reset(seed=[0, 0])
        actions = np.ones((2, 8), np.float32)
        actions[1] = [50, 1e38, 3, 1, 7, 1e30, 2, 1]
        for _ in range(5):
            observations, *_ = envs.step(actions)
        assert np.array_equal(observations[0], observations[1])


def test_speed_limit_gives_a_sawtooth():
    expected = [1.862, 3.538, 5.046, 6.404, 7.625, 8.725, 9.714, 10.605, 6.363]
    with shoal.make("shoal/Hockey-v0", 1) as envs:
        envs.reset(seed=0)
        envs.state["observation"][0, :2] = (-3.0, -2.5)
        found = [envs.step([[0, 1, 0, 0] * 2])[0][0, 0, 4] for _ in expected]
        assert np.allclose(found, expected, atol=6e-4)


def test_slots_can_be_saved_copied_and_pickled():
    with shoal.make("shoal/HockeyOne-v0", 5, mode="TRAIN_DEFENSE") as envs:
        envs.set_attr("opponent", ["weak", None, "strong", "weak", "strong"])
        envs.reset(seed=3)
        envs.action_space.seed(0)
        actions = [envs.action_space.sample() for _ in range(40)]
        envs.step(actions[0])
        saved, copied = envs.save(), pickle.loads(pickle.dumps(envs))
        expected = [envs.step(action)[:4] for action in actions]
        envs.restore(saved)
        with copied:
            for action, results in zip(actions, expected, strict=True):
                assert_identical(envs.step(action)[:4], results)
                assert_identical(copied.step(action)[:4], results)
            assert copied.get_attr("opponent") == envs.get_attr("opponent")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_rewards_of_both_players_belong_to_the_step(mode):
    with shoal.make("shoal/Hockey-v0", 32, autoreset_mode=mode, opponent="strong") as envs:
        _, infos = envs.reset(seed=2)
        assert not infos["rewards"].any()
        envs.action_space.seed(2)
        ends = 0
        for _ in range(400):
            _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
            both_rewards, ended = infos["rewards"], terminated | truncated
            assert np.array_equal(both_rewards[:, 0], rewards)
            if mode == "SameStep" and ended.any():
                assert np.array_equal(infos["final_info"]["rewards"][ended], both_rewards[ended])
                assert not infos["winner"].any()  # of the new match
            assert (both_rewards[terminated].min(1) < -9).all()
            ends += ended.sum()
            if mode == "Disabled" and ended.any():
                envs.reset(options={"reset_mask": ended})
        assert ends > 32


@pytest.mark.parametrize("backend", ["kernel", "inline", "process"])
def test_mode_and_opponent_on_every_backend(backend):
    with shoal.make("shoal/HockeyOne-v0", 2, backend=backend) as envs:
        assert envs.get_attr("opponent") == ("strong", "strong")
        envs.set_attr("mode", ["TRAIN_SHOOTING", "NORMAL"])
        envs.set_attr("opponent", [None, "weak"])
        assert envs.get_attr("mode") == (Mode.TRAIN_SHOOTING, Mode.NORMAL)
        envs.reset(seed=0)
        for _ in range(81):
            *_, truncated, _ = envs.step(np.zeros((2, 4), np.float32))
        assert truncated.tolist() == [True, False]
        with pytest.raises(Exception, match="opponent must be 'weak', 'strong' or None"):
            envs.set_attr("opponent", "average")


def test_mode_and_opponent_of_a_single_environment():
    env = gymnasium.make("shoal/HockeyOne-v0", opponent="weak")
    assert env.get_wrapper_attr("opponent") == "weak"
    env.set_wrapper_attr("mode", "TRAIN_DEFENSE")
    env.unwrapped.opponent = None
    env.reset(seed=0)
    assert env.unwrapped.mode is Mode.TRAIN_DEFENSE
    assert env.unwrapped.time == 0
    with pytest.raises(AttributeError, match="no attribute 'speed'"):
        _ = env.unwrapped.speed
    env.close()


def test_keep_mode_needs_a_shoot_action():
    with shoal.make("shoal/HockeyDiscrete-v0", 2, keep_mode=False) as envs:
        with pytest.raises(ValueError, match="keep_mode cannot be enabled"):
            envs.set_attr("keep_mode", True)
        envs.set_attr("keep_mode", False)


def test_unused_actions_are_ignored():
    with shoal.make("shoal/Hockey-v0", 1, opponent="weak") as envs:
        envs.reset(seed=0)
        observations, *_ = envs.step([[0, 0, 0, 0, np.nan, np.nan, np.nan, np.nan]])
        assert np.isfinite(observations).all()
