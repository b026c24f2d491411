"""SubprocVecEnv with forked workers, which start quickly."""

import pytest

from shoal.sb3 import DummyVecEnv, SubprocVecEnv


class ForkedVecEnv(SubprocVecEnv):
    """Forks its workers, since new interpreters would import Stable-Baselines3 and torch."""

    def __init__(self, env_fns, **options):
        super().__init__(env_fns, start_method="fork", **options)


BOTH = pytest.mark.parametrize("vec_env_class", [DummyVecEnv, ForkedVecEnv])
