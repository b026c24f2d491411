"""Episode statistics equal those of Gymnasium's wrapper."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import shoal
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector import SyncVectorEnv

GYMNASIUM_VERSION = tuple(int(part) for part in gymnasium.__version__.split(".")[:2])


@pytest.mark.parametrize("mode", AutoresetMode)
def test_statistics_equal_the_wrapper(mode):
    if mode is AutoresetMode.SAME_STEP and GYMNASIUM_VERSION < (1, 4):
        pytest.skip("the wrapper of this Gymnasium release counts wrongly in this mode")
    factories = [partial(ProbeEnv, slot) for slot in range(4)]
    ours = shoal.make(factories, statistics=True, autoreset_mode=mode)
    theirs = RecordEpisodeStatistics(SyncVectorEnv(factories, autoreset_mode=mode))
    ours.reset(seed=5)
    theirs.reset(seed=5)
    ours.action_space.seed(5)
    ends = 0
    for _ in range(300):
        action = ours.action_space.sample()
        *_, terminated, truncated, mine = ours.step(action)
        *_, expected = theirs.step(action)
        done = terminated | truncated
        ends += done.sum()
        for infos in (mine, expected):
            if "episode" in infos:
                assert (infos["episode"].pop("t")[done] >= 0).all()
        assert_identical(mine, expected)
        if mode is AutoresetMode.DISABLED and done.any():
            ours.reset(options={"reset_mask": done.copy()})
            theirs.reset(options={"reset_mask": done.copy()})
    assert ends > 50
    ours.close()
    theirs.close()


def test_reset_mask_does_not_affect_other_slots():
    envs = shoal.make([partial(ProbeEnv, slot, None, 10**9) for slot in range(2)], statistics=True)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(envs.action_space.sample())
    envs.reset(options={"reset_mask": np.array([True, False])})
    envs.set_attr("_mean_length", 0.5)
    infos = envs.step(envs.action_space.sample())[4]
    assert_identical(infos["episode"]["l"], np.array([1, 4]))
    envs.close()
