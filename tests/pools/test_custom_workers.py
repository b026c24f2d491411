"""Custom worker functions: failures are reported also if a timeout comes first."""

import time

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import _async_worker

from shoal.errors import ReceiveTimeoutError
from shoal.pools._processes.custom_worker_pool import CustomWorkerPool
from tests.faulty import FaultyEnv, fault


class SlowSleeper(FaultyEnv):
    """Its action "wait" takes longer than the timeout of the test."""

    def step(self, action):
        if action == fault("wait"):
            time.sleep(1.0)
        return super().step(action)


def test_a_failure_before_a_timeout_is_raised_by_the_next_call():
    pool = CustomWorkerPool(
        [SlowSleeper] * 2,
        _async_worker,
        shared_memory=True,
        copy=True,
        context="fork",
        daemon=True,
        observation_mode="same",
        autoreset_mode=AutoresetMode.NEXT_STEP,
        max_concurrency=None,
    )
    pool.reset()
    pool.recv()
    pool.begin_step(np.array([fault("raise"), fault("wait")]))
    with pytest.raises(ReceiveTimeoutError):
        pool.end_step(timeout=0.5)
    with pytest.raises(ArithmeticError, match="fails as asked"):
        pool.end_step()
    pool.close(terminate=True)
