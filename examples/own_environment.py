"""Step your own environment, written in plain Python, on all cores.

`shoal.make` measures the environment and chooses between the calling process and worker processes;
`envs.plan` says what it chose. The last line compares the speed with Gymnasium's SyncVectorEnv.
More cores help only while they are idle: on two busy cores Shoal was 0.6 to 1.3 times as fast.
"""

import time

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

import shoal

CARS = 200
NUM_ENVS = 16
STEPS = 200


class RingRoad(gym.Env):
    """Cars drive in a circle and form jams. The agent drives the first car."""

    observation_space = gym.spaces.Box(0.0, np.inf, (3,), np.float32)  # speed, gap, speed ahead
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)  # brake or accelerate
    length = 20.0 * CARS

    def reset(self, *, seed=None, options=None):
        """Place the cars on the road at slightly random distances."""
        super().reset(seed=seed, options=options)
        self.positions = [20.0 * car + self.np_random.uniform(0, 5) for car in range(CARS)]
        self.speeds = [8.0] * CARS
        self.time = 0
        return self.observation(), {}

    def gap(self, car):
        """The distance to the next car."""
        return (self.positions[(car + 1) % CARS] - self.positions[car]) % self.length

    def observation(self):
        """The observation of the first car."""
        return np.array([self.speeds[0], self.gap(0), self.speeds[1]], np.float32)

    def step(self, action):
        """Simulate a fifth of a second."""
        targets = [min(gap / 1.5, 15.0) for gap in map(self.gap, range(CARS))]
        changes = [0.5 * (goal - speed) for goal, speed in zip(targets, self.speeds, strict=True)]
        changes[0] = float(action[0])
        self.speeds = [max(v + 0.2 * dv, 0.0) for v, dv in zip(self.speeds, changes, strict=True)]
        self.positions = [x + 0.2 * v for x, v in zip(self.positions, self.speeds, strict=True)]
        self.time += 1
        reward = sum(self.speeds) / CARS
        return self.observation(), reward, self.gap(0) < 2.0, self.time == 500, {}


def steps_per_second(envs):
    """Measure a vector whose policy keeps a distance of 1.5 seconds."""
    observations, _ = envs.reset(seed=0)
    start = time.perf_counter()
    for _ in range(STEPS):
        speed, gap, _ = observations.T
        actions = np.clip(gap / 1.5 - speed, -1.0, 1.0)[:, None]
        observations, *_ = envs.step(actions)
    return STEPS * NUM_ENVS / (time.perf_counter() - start)


with shoal.make(RingRoad, num_envs=NUM_ENVS) as envs:
    print(envs.plan)
    shoal_rate = steps_per_second(envs)

sync_envs = SyncVectorEnv([RingRoad] * NUM_ENVS)
sync_rate = steps_per_second(sync_envs)
sync_envs.close()

print(f"{shoal_rate:,.0f} steps/s; Gymnasium's SyncVectorEnv: {sync_rate:,.0f} steps/s")
print(f"{shoal_rate / sync_rate:.1f} times as fast")
