"""Ten minutes of stepping while actors are killed at random."""

import os
import random
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from tests.faulty import FaultyEnv, fault
from tests.pools.ray.pools import actors, ray_pool, wait_until
from tests.vector.test_lifetime import resident_kilobytes

MINUTES = 10
COUNTS = [3, 3, 2]
NUM_ENVS = sum(COUNTS)


class Killer(threading.Thread):
    """Kills a random actor of a pool every few seconds."""

    def __init__(self, pool, seed):
        super().__init__(daemon=True)
        self.kills = 0
        self._pool = pool
        self._random = random.Random(seed)
        self._stopped = threading.Event()

    def run(self):
        while not self._stopped.wait(self._random.uniform(0.5, 3.0)):
            pool_info = self._random.choice(self._pool._clients).pool_info
            if pool_info is None:
                continue  # the replacement of a killed actor is not open yet
            try:
                os.kill(pool_info.process, signal.SIGKILL)
                self.kills += 1
            except ProcessLookupError:
                continue  # the pool has not noticed an earlier kill yet

    def stop(self):
        self._stopped.set()
        self.join()


class Counts:
    """The expected number of steps of each slot's episode, and the number of reported losses."""

    def __init__(self):
        self.steps = np.zeros(NUM_ENVS)
        self.losses = 0

    def check(self, slots, observations, rewards, truncated, infos):
        crashed = np.zeros(len(slots), bool)
        for row, info in (infos or ([], None))[0]:
            crashed[row] |= info.get("crashed", False)
        self.steps[slots] = np.where(crashed, 0, self.steps[slots] + 1)
        self.losses += int(crashed.sum())
        assert truncated.tolist() == crashed.tolist()
        assert observations[:, 1].tolist() == self.steps[slots].tolist()
        assert rewards.tolist() == np.where(crashed, 0, slots).tolist()


def soak(seconds):
    factories = [partial(FaultyEnv, label) for label in range(NUM_ENVS)]
    options = {"on_crash": "restart", "restarts_per_minute": 10_000}
    pool = ray_pool(factories, COUNTS, ray_options=options)
    pool.reset(seeds=range(NUM_ENVS))
    pool.recv()
    rng, counts, killer = random.Random(1), Counts(), Killer(pool, seed=2)
    killer.start()
    nothing, deadline, steps = fault("nothing"), time.monotonic() + seconds, 0
    memory = None
    while time.monotonic() < deadline:
        if rng.random() < 0.5:
            observations, rewards, _, truncated, infos = pool.step([nothing] * NUM_ENVS)
            counts.check(np.arange(NUM_ENVS), observations, rewards, truncated, infos)
        else:
            slots = rng.sample(range(NUM_ENVS), rng.randint(1, NUM_ENVS))
            pool.send([nothing] * len(slots), slots)
            while pool.in_flight:
                batch = pool.recv(min_slots=rng.randint(1, pool.in_flight), timeout=60.0)
                counts.check(
                    batch.slots, batch.observations, batch.rewards, batch.truncated, batch.infos
                )
        steps += 1
        if steps == 2000:
            memory = resident_kilobytes()
    killer.stop()
    pool.close()
    assert memory is None or resident_kilobytes() - memory < 65_536
    return steps, killer.kills, counts.losses


@pytest.mark.slow
@pytest.mark.timeout(60 * MINUTES + 120)
def test_every_loss_is_reported_once_and_no_step_is_lost(ray_here):
    steps, kills, losses = soak(60.0 * MINUTES)
    print(f"{steps} steps, {kills} kills, {losses} slots were lost")
    assert kills > 60 * MINUTES / 8
    assert losses >= 2
    wait_until(lambda: not actors(ray_here), 10.0)
