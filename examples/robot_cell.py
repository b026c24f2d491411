"""Step two robot cells as one vector, with one connection to each and mocks instead of robots.

The script prints the shape of the images (two cells with four stations each), and how many parts
were picked in how many episodes.
"""

import numpy as np

from shoal.remote.bam import MockEnv, MockTransport, make_bam_vec_env

CELLS = 2
STATIONS = 4  # per cell
STEPS = 50


def make_client(**kwargs):
    """One client for all stations of a cell; for real robots, use a RosbridgeTransport."""
    return MockEnv(
        MockTransport(),
        reward_fn=lambda *, obs, **_: float(np.abs(obs["obs"]).max() < 0.5),
        terminated_fn=lambda *, step_count, **_: step_count == 9,
        **kwargs,
    )


with make_bam_vec_env([make_client] * CELLS, num_envs=STATIONS, obs=True, color=True) as envs:
    envs.action_space.seed(0)
    observations, infos = envs.reset(seed=42)
    picked = episodes = 0
    for _ in range(STEPS):
        # One request per cell; the next step resets stations whose episode ended.
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        picked += int(rewards.sum())
        episodes += int(terminated.sum())
    print("images:", observations["color_img"].shape)

    # Stations that are done continue without waiting for the others.
    actions = envs.action_space.sample()
    envs.send(actions)
    for _ in range(STEPS):
        batch = envs.recv(min_slots=1)
        envs.send(actions[batch.slots], batch.slots)

print(f"{CELLS * STATIONS * STEPS} steps, {episodes} episodes, {picked} parts picked")
