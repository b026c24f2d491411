"""Statistics of episodes, observations and rewards."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import InvalidBound
from gymnasium.vector import AutoresetMode

import shoal
from shoal._wrapper_core.moments import RunningMeanStd
from shoal.errors import ResetMaskError
from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv, wrappers
from tests.vector.wrappers.playing import PARTS, factory_of, random_env


class CountingEnv(gymnasium.Env):
    """Returns the number of the step as observation and reward; episodes have `length` steps."""

    observation_space = spaces.Box(-99, 99, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length):
        self.length = length

    def observe(self):
        return np.array([self.steps, self.length], np.float32)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        return self.observe(), float(self.steps), self.steps == self.length, False, {}


def counting(*lengths, mode=AutoresetMode.NEXT_STEP, **kwargs):
    factories = [lambda length=length: CountingEnv(length) for length in lengths]
    return shoal.make(factories, backend="inline", autoreset_mode=mode, **kwargs)


IDLE = np.zeros(3, np.int64)


def test_masked_reset_does_not_affect_episodes_of_other_slots():
    with wrappers.RecordEpisodeStatistics(counting(2, 5, 5)) as envs:
        envs.reset()
        envs.step(IDLE)
        options = {"reset_mask": np.array([False, True, False]), "other": 1}
        envs.reset(options=options)
        assert list(options) == ["reset_mask", "other"]
        assert envs.episode_returns.tolist() == [1, 0, 1]
        assert envs.episode_lengths.tolist() == [1, 0, 1]
        *_, infos = envs.step(IDLE)
        assert infos["_episode"].tolist() == [True, False, False]
        assert infos["episode"]["r"].tolist() == [3, 0, 0]
        assert envs.prev_dones.tolist() == [True, False, False]
        envs.reset(options={"reset_mask": np.array([True, False, False])})
        assert not envs.prev_dones.any()
        envs.step(IDLE)
        assert envs.episode_returns.tolist() == [1, 3, 6]


def test_mask_with_vectors_that_remove_it_from_the_options():
    inner = gymnasium.vector.SyncVectorEnv([lambda: CountingEnv(9)] * 3)
    with wrappers.RecordEpisodeStatistics(wrappers.NormalizeReward(inner)) as envs:
        envs.reset()
        envs.step(IDLE)
        options = {"reset_mask": np.array([False, True, False])}
        envs.reset(options=options)
        assert "reset_mask" in options
        assert envs.episode_lengths.tolist() == [1, 0, 1]
        assert envs.env.accumulated_reward.tolist() == [1, 0, 1]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_statistics_in_list_infos(mode):
    with wrappers.RecordEpisodeStatistics(
        counting(2, 3, 9, mode=mode, info_format="list"), stats_key="done"
    ) as envs:
        _, infos = envs.reset()
        assert infos == [{}, {}, {}]
        *_, infos = envs.step(IDLE)
        assert infos == [{}, {}, {}]
        *_, infos = envs.step(IDLE)
        assert infos[0]["done"]["r"] == 3
        assert infos[0]["done"]["l"] == 2
        assert 0 <= infos[0]["done"]["t"] < 9
        assert infos[1:] == [{}, {}]
        assert ("final_obs" in infos[0]) == (mode is AutoresetMode.SAME_STEP)


@pytest.mark.parametrize("info_format", ["list", "dict"])
def test_statistics_do_not_overwrite_infos(info_format):
    inner = counting(2, 2, 2, info_format=info_format, statistics=True)
    with wrappers.RecordEpisodeStatistics(inner) as envs:
        envs.reset()
        envs.step(IDLE)
        with pytest.raises(ValueError, match="'episode' but this key already exists"):
            envs.step(IDLE)


def test_masked_reset_updates_statistics_with_reset_slots_only():
    with wrappers.NormalizeObservation(counting(4, 5, 6)) as envs:
        expected = RunningMeanStd(shape=(2,), dtype=np.float32)
        envs.reset()
        expected.update(np.array([[0, 4], [0, 5], [0, 6]], np.float32))
        envs.step(IDLE)
        expected.update(np.array([[1, 4], [1, 5], [1, 6]], np.float32))
        observations, _ = envs.reset(options={"reset_mask": np.array([True, False, True])})
        expected.update(np.array([[0, 4], [0, 6]], np.float32))
        assert_identical(envs.obs_rms.mean, expected.mean)
        assert_identical(envs.obs_rms.var, expected.var)
        rows = np.array([[0, 4], [1, 5], [0, 6]], np.float32)
        assert_identical(observations, expected.normalize(rows, 1e-8))


def test_final_observations_do_not_update_statistics():
    with wrappers.NormalizeObservation(counting(2, 9, 9, mode="SameStep")) as envs:
        envs.reset()
        envs.step(IDLE)
        *_, infos = envs.step(IDLE)
        assert envs.obs_rms.count == pytest.approx(9, abs=1e-3)
        final = envs.obs_rms.normalize(np.array([2, 2], np.float32), 1e-8)
        assert_identical(infos["final_obs"][0], final)
        assert infos["final_obs"][1] is None


@pytest.mark.parametrize("mode", AutoresetMode)
def test_discounted_return_restarts_with_the_episode(mode):
    with wrappers.NormalizeReward(counting(2, 9, 9, mode=mode), gamma=1.0) as envs:
        envs.reset()
        envs.step(IDLE)
        _, rewards, terminated, *_ = envs.step(IDLE)
        deviation = np.sqrt(envs.return_rms.var + 1e-8)
        assert_identical(rewards, np.array([2.0, 2.0, 2.0]) / deviation)
        if mode is AutoresetMode.DISABLED:
            envs.reset(options={"reset_mask": terminated})
        last = 0 if mode is not AutoresetMode.NEXT_STEP else 2
        assert envs.accumulated_reward.tolist() == [last, 3, 3]


@pytest.mark.parametrize("truncates", [False, True])
def test_environments_may_use_the_info_key_crashed(truncates):
    class CarEnv(CountingEnv):
        def step(self, action):
            observation, reward, ended, _, _ = super().step(action)
            return observation, reward, ended and not truncates, ended, {"crashed": ended}

    with wrappers.RecordEpisodeStatistics(shoal.make(lambda: CarEnv(2), backend="inline")) as envs:
        envs.reset()
        for _ in range(6):  # two steps and a reset, twice
            envs.step([0])
        assert list(envs.length_queue) == [2, 2]
        assert list(envs.return_queue) == [3, 3]


def test_statistics_of_restarted_slots():
    class FragileEnv(CountingEnv):
        def step(self, action):
            if action == 1:
                import os

                os._exit(1)
            return super().step(action)

    inner = shoal.make(
        lambda: FragileEnv(9), num_envs=2, backend="process", workers=2, on_crash="restart"
    )
    envs = wrappers.RecordEpisodeStatistics(wrappers.FrameStackObservation(inner, 2))
    with envs:
        envs.reset(seed=1)
        envs.step(np.array([0, 0]))
        observations, _, _, truncated, infos = envs.step(np.array([1, 0]))
        assert truncated.tolist() == [True, False]
        assert infos["episode"]["l"].tolist() == [1 + 1, 0]
        assert observations[:, :, 0].tolist() == [[0, 0], [1, 2]]
        observations, *_ = envs.step(np.array([0, 0]))
        assert observations[:, :, 0].tolist() == [[0, 1], [2, 3]]
        assert envs.episode_lengths.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda envs: wrappers.NormalizeObservation(envs, epsilon=0), InvalidBound, "epsilon"),
        (lambda envs: wrappers.NormalizeReward(envs, epsilon=-1), InvalidBound, "epsilon"),
        (lambda envs: wrappers.NormalizeReward(envs, gamma=1.5), InvalidBound, "gamma"),
        (lambda envs: wrappers.ClipReward(envs), InvalidBound, "cannot be None"),
        (lambda envs: wrappers.ClipReward(envs, 2, 1), InvalidBound, "smaller than max"),
        (lambda envs: wrappers.FrameStackObservation(envs, 2.0), TypeError, "an integer"),
        (lambda envs: wrappers.FrameStackObservation(envs, 0), ValueError, "greater than zero"),
        (
            lambda envs: wrappers.FrameStackObservation(envs, 2, padding_type="rest"),
            ValueError,
            "'rest'",
        ),
        (
            lambda envs: wrappers.FrameStackObservation(envs, 2, padding_type=np.zeros(3)),
            ValueError,
            "Unexpected `padding_type`",
        ),
    ],
)
def test_invalid_wrapper_arguments(make, error, message):
    with counting(3, 3, 3) as envs:
        with pytest.raises(error, match=message):
            make(envs)
        assert not envs.closed
        envs.reset()


def test_unsupported_spaces():
    envs = SyncVectorEnv([random_env(PARTS)] * 2)
    with envs, pytest.raises(TypeError, match="flatten or filter"):
        wrappers.NormalizeObservation(envs)
    nested = spaces.Dict(words=spaces.Tuple((spaces.Text(4), spaces.Discrete(2))))
    envs = SyncVectorEnv([random_env(nested)] * 2)
    with envs, pytest.raises(TypeError, match="not Text"):
        wrappers.FrameStackObservation(envs, 2)


@pytest.mark.parametrize(
    "mask", [[True, False, True], np.array([True]), np.zeros(3, bool), np.ones(3, int)]
)
@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.RecordEpisodeStatistics,
        wrappers.NormalizeObservation,
        wrappers.NormalizeReward,
        lambda envs: wrappers.FrameStackObservation(envs, 2),
    ],
)
def test_invalid_masks_change_nothing(wrap, mask):
    with wrap(counting(3, 3, 3)) as envs:
        envs.reset()
        before = {key: value.copy() for key, value in envs._state().items() if key != "seconds"}
        with pytest.raises(ResetMaskError):
            envs.reset(options={"reset_mask": mask})
        after = {key: value for key, value in envs._state().items() if key != "seconds"}
        assert_identical(after, before)


def test_missing_autoreset_metadata_means_next_step():
    inner = gymnasium.vector.SyncVectorEnv([factory_of("CartPole-v1")] * 2)
    inner.metadata = {}
    with pytest.warns(UserWarning, match="missing `autoreset_mode`"):
        envs = wrappers.NormalizeObservation(inner)
    assert envs.autoreset_mode is AutoresetMode.NEXT_STEP
    inner.metadata = {"autoreset_mode": "NextStep"}
    with pytest.raises(TypeError, match="AutoresetMode"):
        wrappers.RecordEpisodeStatistics(inner)
    inner.close()
