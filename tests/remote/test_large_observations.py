"""Large observations over shared memory are ordinary arrays that belong to the user."""

import gc
import os
import sys
import threading
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.pools import InlinePool
from shoal.testing import assert_identical
from shoal.vector import VectorEnv
from tests.remote.peers import wait_until
from tests.remote.serving import served
from tests.remote.test_lifetime import mapped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory requires Linux")

NUM_ENVS = 4
HELD_BATCHES = 7


class Pictures(gymnasium.Env):
    """Environment whose observations encode the slot and the step number.

    A batch has about 117 kB. With ``size``, an observation has a further leaf of that many bytes.
    """

    action_space = spaces.Discrete(100)

    def __init__(self, label, blocked=None, size=0):
        self._label, self._blocked, self._size, self._steps = label, blocked, size, 0
        self.observation_space = spaces.Dict(
            {
                "picture": spaces.Box(0, 255, (80, 80, 3), np.uint8),
                "number": spaces.Box(0, np.inf, (), np.float64),
                "map": spaces.Box(-1, 1, (50, 50), np.float32),
                "padding": spaces.Box(0, 255, (size,), np.uint8),
            }
        )

    def _observe(self):
        number = 20 * self._label + self._steps
        return {
            "picture": np.full((80, 80, 3), number % 256, np.uint8),
            "number": np.float64(number),
            "map": np.full((50, 50), (number % 100) / 100, np.float32),
            "padding": np.full(self._size, number % 256, np.uint8),
        }

    def reset(self, **_):
        self._steps = 0
        return self._observe(), {}

    def step(self, action):
        if self._blocked is not None and action == 99:
            self._blocked.wait(20.0)
        self._steps += 1
        return self._observe(), float(action), self._steps == 11, False, {}


def pool(blocked=None, size=0):
    return InlinePool([partial(Pictures, label, blocked, size) for label in range(NUM_ENVS)])


@pytest.fixture
def envs():
    with served(pool, "tcp://127.0.0.1:0") as url, shoal.connect(url) as connected:
        assert connected.stats().transport.endswith("shared memory")
        yield connected


def actions():
    return np.arange(NUM_ENVS)


def numbers(observations):
    return observations["number"].tolist()


# 32 MiB in a batch are more than a ring holds at once.
@pytest.mark.parametrize("size", [0, pytest.param(8 << 20, marks=pytest.mark.slow)])
def test_rollout_equals_local_rollout(size):
    local = VectorEnv(pool(size=size))
    with (
        served(partial(pool, size=size), "tcp://127.0.0.1:0") as url,
        shoal.connect(url) as envs,
    ):
        assert_identical(envs.reset(seed=1), local.reset(seed=1))
        for _ in range(40 if size == 0 else 5):
            assert_identical(envs.step(actions()), local.step(actions()))
        assert envs.stats().transport.endswith("shared memory")


def test_arrays_own_their_memory(envs):
    envs.reset(seed=1)
    for part in envs.step(actions())[0].values():
        assert part.flags.owndata
        assert part.flags.writeable


def test_held_batches_never_change(envs):
    envs.reset(seed=1)
    held = [envs.step(actions())[0] for _ in range(HELD_BATCHES)]
    copies = [{key: part.copy() for key, part in each.items()} for each in held]
    for _ in range(2 * HELD_BATCHES):
        envs.step(actions())
    assert_identical(held, copies)


@pytest.mark.parametrize(
    "view_of",
    [
        lambda batch: batch["picture"][2],
        lambda batch: batch["map"].reshape(-1)[::7],
        lambda batch: memoryview(batch["picture"]),
        lambda batch: np.asarray(batch["map"]).view(np.int32).T,
    ],
)
def test_held_views_never_change(envs, view_of):
    envs.reset(seed=1)
    view = view_of(envs.step(actions())[0])
    before = np.array(view)
    for _ in range(2 * HELD_BATCHES):
        envs.step(actions())
    np.testing.assert_array_equal(np.array(view), before)


def test_modified_arrays_do_not_affect_later_batches(envs):
    envs.reset(seed=1)
    batch = envs.step(actions())[0]
    batch["picture"][:] = 255
    batch["picture"].shape = (-1,)
    batch["map"].flags.writeable = False
    del batch
    for step in range(2, 5):
        batch = envs.step(actions())[0]
        assert batch["picture"].shape == (NUM_ENVS, 80, 80, 3)
        assert batch["picture"][:, 0, 0, 0].tolist() == (20 * actions() + step).tolist()
        assert batch["map"].flags.writeable
        assert batch in envs.observation_space
        del batch


def test_observations_outlive_the_vector():
    gc.collect()
    before = mapped()
    with served(pool, "tcp://127.0.0.1:0") as url:
        envs = shoal.connect(url)
        envs.reset(seed=1)
        observations = envs.step(actions())[0]
        envs.close()
        del envs
    gc.collect()
    assert wait_until(lambda: mapped() <= before)  # the batch does not keep the rings mapped
    assert observations["picture"][:, 0, 0, 0].tolist() == [1, 21, 41, 61]
    assert numbers(observations) == [1, 21, 41, 61]


def test_late_response_is_received_after_a_timeout():
    blocked = threading.Event()
    with (
        served(partial(pool, blocked), "tcp://127.0.0.1:0") as url,
        shoal.connect(url, timeout=0.3) as envs,
    ):
        local = VectorEnv(pool())
        assert_identical(envs.reset(seed=1), local.reset(seed=1))
        slow = np.full(NUM_ENVS, 99)
        with pytest.raises(ReceiveTimeoutError):
            envs.step(slow)
        blocked.set()
        late = envs.recv()
        assert_identical(tuple(late)[1:4], local.step(slow)[:3])
        assert_identical(envs.step(actions()), local.step(actions()))


def test_forked_child_keeps_the_batches_of_its_parent(envs):
    envs.reset(seed=1)
    held = envs.step(actions())[0]
    expected = {key: part.copy() for key, part in held.items()}
    to_child, from_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(to_child, 1)  # until the parent has stepped on
        os._exit(0 if all((held[key] == expected[key]).all() for key in held) else 1)
    held["picture"][:] = 255
    del held
    steps = [numbers(envs.step(actions())[0]) for _ in range(9)]
    os.write(from_parent, b".")
    assert os.waitpid(child, 0)[1] == 0
    os.close(to_child)
    os.close(from_parent)
    np.testing.assert_array_equal(steps, np.add.outer(np.arange(2, 11), 20 * actions()))


def test_forking_between_steps_does_not_disturb_the_parent(envs):
    envs.reset(seed=1)
    held = []
    for _ in range(HELD_BATCHES):
        held.append(envs.step(actions())[0])
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    colours = [batch["picture"][1, 0, 0, 0] for batch in held]
    assert colours == [20 + k for k in range(1, HELD_BATCHES + 1)]
