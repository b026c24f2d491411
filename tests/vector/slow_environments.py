"""Environments and a custom worker function, in a module that worker processes import."""

import time

from gymnasium.vector.async_vector_env import _async_worker

from shoal.testing import ProbeEnv


def custom_worker(*arguments):
    """Gymnasium's worker function, passed as a custom one."""
    _async_worker(*arguments)


class SlowToCall(ProbeEnv):
    def slow(self):
        time.sleep(0.2)
        return "slow"

    def fast(self):
        return "fast"


class Slow(SlowToCall):
    def reset(self, *, seed=None, options=None):
        time.sleep(0.2)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        time.sleep(0.2)
        return super().step(action)
