"""Workers that are there at once, for tests of what they do and not of how they are started."""

import pytest

from shoal.sb3 import DummyVecEnv, SubprocVecEnv


class ForkedVecEnv(SubprocVecEnv):
    """Forked: fresh processes would import Stable-Baselines3, and torch with it, once more."""

    def __init__(self, env_fns, **options):
        super().__init__(env_fns, start_method="fork", **options)


BOTH = pytest.mark.parametrize("vec_env_class", [DummyVecEnv, ForkedVecEnv])
