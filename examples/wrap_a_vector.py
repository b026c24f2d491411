"""Normalise and stack observations, and save the statistics for an evaluation vector.

The script prints the shape of the evaluation observations (two slots with four frames of three
numbers) and the saved means.
"""

import tempfile
from pathlib import Path

import numpy as np

import shoal
from shoal.vector.wrappers import FrameStackObservation, NormalizeObservation

STEPS = 500


def wrapped(num_envs):
    """A vector with normalised observations in stacks of four, and the normalising wrapper."""
    envs = shoal.make("Pendulum-v1", num_envs=num_envs, autoreset_mode="SameStep")
    normalized = NormalizeObservation(envs)
    return FrameStackObservation(normalized, stack_size=4), normalized


envs, normalized = wrapped(num_envs=16)
envs.reset(seed=0)
for _ in range(STEPS):
    observations, *_, infos = envs.step(envs.action_space.sample())
    if "final_obs" in infos:  # also normalised and stacked
        assert infos["final_obs"][0].shape == observations[0].shape
evaluation, statistics = wrapped(num_envs=2)
with tempfile.TemporaryDirectory() as folder:
    normalized.save(Path(folder) / "statistics.npz")  # arrays, no pickle
    statistics.load(Path(folder) / "statistics.npz")
envs.close()

statistics.update_running_mean = False
observations, _ = evaluation.reset(seed=1)
evaluation.close()

print(f"{16 * STEPS} steps; observations of shape {observations.shape}")
print("mean observation:", np.round(statistics.obs_rms.mean, 2))
