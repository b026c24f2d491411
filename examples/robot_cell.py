"""Two robot cells as one vector, a connection to each; here mocks stand in for the robots.

One should see the shape of the pictures (from two cells of four places each), and how many parts
were picked in how many episodes.
"""

import numpy as np

from shoal.remote.bam import MockEnv, MockTransport, make_bam_vec_env

CELLS = 2
PLACES = 4  # of each cell
STEPS = 50


def make_client(**kwargs):
    """One client for all places of a cell; with robots it would have a RosbridgeTransport."""
    return MockEnv(
        MockTransport(),
        reward_fn=lambda *, obs, **_: float(np.abs(obs["obs"]).max() < 0.5),
        terminated_fn=lambda *, step_count, **_: step_count == 9,
        **kwargs,
    )


with make_bam_vec_env([make_client] * CELLS, num_envs=PLACES, obs=True, color=True) as envs:
    envs.action_space.seed(0)
    observations, infos = envs.reset(seed=42)
    picked = episodes = 0
    for _ in range(STEPS):
        # One request to each cell; places that have finished are reset by their next step.
        observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        picked += int(rewards.sum())
        episodes += int(terminated.sum())
    print("pictures:", observations["color_img"].shape)

    # Places that are done go on, whatever the others do.
    actions = envs.action_space.sample()
    envs.send(actions)
    for _ in range(STEPS):
        batch = envs.recv(min_slots=1)
        envs.send(actions[batch.slots], batch.slots)

print(f"{CELLS * PLACES * STEPS} steps, {episodes} episodes, {picked} parts picked")
