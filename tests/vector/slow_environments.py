"""What the workers of these tests import: environments, and a worker of a user's own."""

import time

from gymnasium.vector.async_vector_env import _async_worker

from shoal.testing import ProbeEnv


def custom_worker(*arguments):
    """Gymnasium's own worker, as a user's."""
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
