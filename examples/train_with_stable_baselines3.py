"""Train Stable-Baselines3's PPO on worker processes, and save the running normalisation.

    python examples/train_with_stable_baselines3.py [STEPS]

The last line prints the mean return of the last hundred episodes. A random policy reaches 22.
"""

import sys
import tempfile
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger

from shoal.sb3 import SubprocVecEnv, VecNormalize, make_vec_env  # was: stable_baselines3.common...

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 8_000

torch.set_num_threads(1)  # more threads are slower for networks this small
vec_env = VecNormalize(make_vec_env("CartPole-v1", n_envs=8, seed=0, vec_env_cls=SubprocVecEnv))
model = PPO("MlpPolicy", vec_env, n_steps=256, batch_size=256, seed=0, device="cpu")
model.set_logger(Logger(None, []))  # the default logger would create a folder
model.learn(STEPS)

returns = [episode["r"] for episode in model.ep_info_buffer]
with tempfile.TemporaryDirectory() as folder:
    file = str(Path(folder) / "statistics.pkl")
    vec_env.save(file)  # in Stable-Baselines3's format, which both libraries read
    loaded = VecNormalize.load(file, vec_env.venv)
assert (loaded.obs_rms.mean == vec_env.obs_rms.mean).all()
vec_env.close()

mean = sum(returns) / len(returns)
print(f"{model.num_timesteps} steps; mean return of the last episodes {mean:.0f}")
