"""Trays: large observations in shared memory are the user's, as all others are."""

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
from shoal.remote._wire import HEADER_BYTES, IN_TRAY, WHOLE, Header, Kind, pack_header, read_header
from shoal.testing import assert_identical
from shoal.vector import VectorEnv
from tests.remote.peers import wait_until
from tests.remote.serving import served
from tests.remote.test_lifetime import mapped
from tests.remote.test_ports import two_ends

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory is Linux's")

NUM_ENVS = 4
MORE_THAN_TRAYS = 7


class Pictures(gymnasium.Env):
    """Shows pictures of one colour, which is the number of the step, and the number itself."""

    observation_space = spaces.Dict(
        {
            "picture": spaces.Box(0, 255, (80, 80, 3), np.uint8),
            "number": spaces.Box(0, np.inf, (), np.float64),
            "map": spaces.Box(-1, 1, (50, 50), np.float32),
        }
    )
    action_space = spaces.Discrete(100)

    def __init__(self, label, waits=None):
        self._label, self._waits, self._steps = label, waits, 0

    def _observe(self):
        number = 20 * self._label + self._steps
        return {
            "picture": np.full((80, 80, 3), number % 256, np.uint8),
            "number": np.float64(number),
            "map": np.full((50, 50), (number % 100) / 100, np.float32),
        }

    def reset(self, **_):
        self._steps = 0
        return self._observe(), {}

    def step(self, action):
        if self._waits is not None and action == 99:
            self._waits.wait(20.0)
        self._steps += 1
        ended = self._steps == 11
        return self._observe(), float(action), ended, False, {}


def pool(waits=None):
    return InlinePool([partial(Pictures, label, waits) for label in range(NUM_ENVS)])


@pytest.fixture
def envs():
    with served(pool, "tcp://127.0.0.1:0") as url, shoal.connect(url) as connected:
        yield connected


def actions():
    return np.arange(NUM_ENVS)


def is_in_tray(observations):
    """Whether a batch lies in shared memory."""
    return not observations["picture"].flags.owndata


def test_a_rollout_in_trays_equals_the_local_one(envs):
    local = VectorEnv(pool())
    assert_identical(envs.reset(seed=1), local.reset(seed=1))
    in_trays = 0
    for _ in range(40):
        ours = envs.step(actions())
        in_trays += is_in_tray(ours[0])
        assert_identical(ours, local.step(actions()))
    assert in_trays == 40


def test_what_the_user_holds_stays_as_it_is_however_much_that_is(envs):
    envs.reset(seed=1)
    held = [envs.step(actions())[0] for _ in range(MORE_THAN_TRAYS)]
    copies = [{key: part.copy() for key, part in each.items()} for each in held]
    for _ in range(MORE_THAN_TRAYS):
        assert not is_in_tray(envs.step(actions())[0])  # there is none left
    assert_identical(held, copies)
    del held
    gc.collect()
    assert is_in_tray(envs.step(actions())[0])


@pytest.mark.parametrize(
    "kept",
    [
        lambda batch: batch["picture"][2],
        lambda batch: batch["map"].reshape(-1)[::7],
        lambda batch: memoryview(batch["picture"]),
        lambda batch: np.asarray(batch["map"]).view(np.int32).T,
    ],
)
def test_a_part_that_is_held_stays_as_it_is(envs, kept):
    envs.reset(seed=1)
    part = kept(envs.step(actions())[0])
    before = np.array(part)
    for _ in range(2 * MORE_THAN_TRAYS):
        envs.step(actions())
    np.testing.assert_array_equal(np.array(part), before)


def test_what_the_user_has_changed_comes_back_as_it_was_made(envs):
    envs.reset(seed=1)
    batch = envs.step(actions())[0]
    batch["picture"].shape = (-1,)
    batch["map"].flags.writeable = False
    del batch
    for _ in range(3):
        batch = envs.step(actions())[0]
        assert batch["picture"].shape == (NUM_ENVS, 80, 80, 3)
        assert batch["map"].flags.writeable
        assert batch in envs.observation_space
        del batch


def test_observations_outlive_the_vector_and_its_memory_goes_with_them():
    gc.collect()  # what other tests have left
    before = mapped()
    with served(pool, "tcp://127.0.0.1:0") as url:
        envs = shoal.connect(url)
        envs.reset(seed=1)
        observations = envs.step(actions())[0]
        assert is_in_tray(observations)
        envs.close()
        del envs
    gc.collect()
    assert [row["picture"][0, 0, 0] for row in _rows(observations)] == [1, 21, 41, 61]
    del observations
    gc.collect()
    assert wait_until(lambda: mapped() <= before)


def _rows(batch):
    return [{key: part[row] for key, part in batch.items()} for row in range(NUM_ENVS)]


def test_a_late_answer_is_received_out_of_its_tray():
    waits = threading.Event()
    with (
        served(partial(pool, waits), "tcp://127.0.0.1:0") as url,
        shoal.connect(url, timeout=0.3) as envs,
    ):
        local = VectorEnv(pool())
        assert_identical(envs.reset(seed=1), local.reset(seed=1))
        slow = np.full(NUM_ENVS, 99)
        with pytest.raises(ReceiveTimeoutError):
            envs.step(slow)
        waits.set()
        late = envs.recv()
        assert_identical(tuple(late)[1:4], local.step(slow)[:3])
        assert_identical(envs.step(actions()), local.step(actions()))


def test_a_forked_child_sees_what_its_parent_has_seen(envs):
    envs.reset(seed=1)
    held = envs.step(actions())[0]
    assert is_in_tray(held)
    expected = {key: part.copy() for key, part in held.items()}
    to_child, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(to_child, 1)  # until the parent has gone on
        os._exit(0 if all((held[key] == expected[key]).all() for key in held) else 1)
    held["picture"][:] = 255  # neither this
    del held
    seen = [envs.step(actions())[0]["number"].copy() for _ in range(9)]  # nor these are its affair
    os.write(told, b".")
    assert os.waitpid(child, 0)[1] == 0
    os.close(to_child)
    os.close(told)
    np.testing.assert_array_equal(seen, np.add.outer(np.arange(2, 11), 20 * actions()))


def test_forks_use_up_trays_and_then_do_without(envs):
    envs.reset(seed=1)
    held = []
    for _ in range(MORE_THAN_TRAYS):
        held.append(envs.step(actions())[0])
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    numbers = [batch["picture"][1, 0, 0, 0] for batch in held]
    assert numbers == [20 + k for k in range(1, MORE_THAN_TRAYS + 1)]
    assert [is_in_tray(batch) for batch in held] == [True] * 4 + [False] * 3


def answering(capacity, tray):
    """The server's end of the fast path, asked for all slots with a tray of this number."""
    from shoal import _native
    from shoal._spaces import Layout

    observed = Layout.of(spaces.Box(0, 1, (200, 100), np.float32))
    asked = Layout.of(spaces.Discrete(9))
    fast_path = _native.FastPathServer(
        asked.tree, observed.tree, 2, step=Kind.STEP, batch=Kind.BATCH, whole=WHOLE, in_tray=IN_TRAY
    )
    with two_ends(capacity, 4 * fast_path.tray_bytes) as (client, server):
        header = bytearray(pack_header(Header(Kind.STEP, WHOLE, 2, 0, 0, 1, 0, 0, 16)))
        header[6] = tray
        client.send([bytes(header), np.arange(2)])
        number, _ = fast_path.next(server, 0, 1.0)
        results = np.ones((2, 200, 100), np.float32), np.zeros(2), *np.zeros((2, 2), bool), None
        assert fast_path.answer(server, results, 1, number, 0)
        return read_header(client.peek(HEADER_BYTES, 1.0))


def test_a_tray_that_there_is_not_is_not_written_to():
    results, observations = 2 * 10, 2 * 200 * 100 * 4
    assert answering(1 << 20, 4)[1] == IN_TRAY
    assert answering(1 << 20, 4).body == results
    for tray in (0, 5, 255):
        header = answering(1 << 20, tray)
        assert header.flags == 0
        assert header.body == results + observations
