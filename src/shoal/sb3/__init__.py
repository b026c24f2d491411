"""The Stable-Baselines3 frontend: its vectors, wrappers and helpers under their own names.

Change ``from stable_baselines3.common.vec_env import ...`` to ``from shoal.sb3 import ...``.

Example:
    >>> from shoal.sb3 import SubprocVecEnv, VecNormalize, make_vec_env
    >>> vec_env = VecNormalize(make_vec_env("Pendulum-v1", n_envs=2, seed=1))
    >>> vec_env.reset().dtype
    dtype('float32')
    >>> vec_env.close()

:func:`as_vec_env` converts any vector of Gymnasium's interface, such as those of
:func:`shoal.make`: ``PPO("MlpPolicy", as_vec_env(shoal.make("CartPole-v1", num_envs=8)))``.
Importing this package replaces nothing in Stable-Baselines3; :func:`patch_algorithms` makes its
algorithms accept such vectors without the conversion.
"""

try:
    import stable_baselines3 as _  # noqa: F401
except ImportError as error:
    raise ImportError('shoal.sb3 needs Stable-Baselines3: pip install "shoal[sb3]"') from error

from shoal.sb3._algorithm_patch import patch_algorithms, unpatch_algorithms
from shoal.sb3._bridges import as_vec_env, as_vector_env
from shoal.sb3._unwrap import (
    is_vecenv_wrapped,
    sync_envs_normalization,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)
from shoal.sb3.base_vec_env import (
    CloudpickleWrapper,
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
)
from shoal.sb3.dummy_vec_env import DummyVecEnv
from shoal.sb3.env_util import is_wrapped, make_atari_env, make_vec_env, unwrap_wrapper
from shoal.sb3.stacked_observations import StackedObservations
from shoal.sb3.subproc_vec_env import SubprocVecEnv
from shoal.sb3.vec_check_nan import VecCheckNan
from shoal.sb3.vec_extract_dict_obs import VecExtractDictObs
from shoal.sb3.vec_frame_stack import VecFrameStack
from shoal.sb3.vec_monitor import VecMonitor
from shoal.sb3.vec_normalize import VecNormalize
from shoal.sb3.vec_transpose import VecTransposeImage
from shoal.sb3.vec_video_recorder import VecVideoRecorder

__all__ = [
    "CloudpickleWrapper",
    "DummyVecEnv",
    "StackedObservations",
    "SubprocVecEnv",
    "VecCheckNan",
    "VecEnv",
    "VecEnvIndices",
    "VecEnvObs",
    "VecEnvStepReturn",
    "VecEnvWrapper",
    "VecExtractDictObs",
    "VecFrameStack",
    "VecMonitor",
    "VecNormalize",
    "VecTransposeImage",
    "VecVideoRecorder",
    "as_vec_env",
    "as_vector_env",
    "is_vecenv_wrapped",
    "is_wrapped",
    "make_atari_env",
    "make_vec_env",
    "patch_algorithms",
    "sync_envs_normalization",
    "unpatch_algorithms",
    "unwrap_vec_normalize",
    "unwrap_vec_wrapper",
    "unwrap_wrapper",
]
