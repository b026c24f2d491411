"""Lost workers are replaced, and each of their slots reports the loss exactly once."""

import os
import signal
import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from shoal.errors import VectorFailedError, WorkerCrashedError
from shoal.pools import ProcessPool
from shoal.vector import AutoresetMode
from tests.faulty import FaultyEnv, fault
from tests.interrupting import Lines
from tests.random_environments import WordSpace

NOTHING = fault("nothing")


def started(env=FaultyEnv, count=4, **options):
    options = {"caller_works": False, "workers": 2, "on_crash": "restart", **options}
    pool = ProcessPool([partial(env, label) for label in range(count)], **options)
    pool.reset(seeds=range(count))
    pool.recv()
    return pool


def actions(slot, name, count=4):
    """Return the action of this name for one slot, and "nothing" for the others."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def kill_worker(pool, worker):
    pid = pool.worker_states()[worker].process
    os.kill(pid, signal.SIGKILL)
    while is_alive(pid):
        time.sleep(0.001)


def is_alive(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def notice_loss(pool, slot, action=NOTHING):
    """Let the pool notice a lost worker while another worker steps this slot."""
    time.sleep(0.02)
    pool.send([action], slots=[slot])
    pool.recv()
    assert sum(state.restarts for state in pool.worker_states()) == 1


def crashed_slots(infos):
    return [] if infos is None else [slot for slot, info in infos[0] if info.get("crashed")]


class TestRestarts:
    @pytest.mark.parametrize("how", ["exit", "kill", "segfault"])
    def test_cost_one_episode_of_the_lost_slots(self, how, caplog):
        pool = started()
        pool.step(actions(0, "nothing"))
        observations, rewards, terminated, truncated, infos = pool.step(actions(1, how))
        assert truncated.tolist() == [True, True, False, False]
        assert not terminated.any()
        assert observations[:, 1].tolist() == [0, 0, 2, 2]
        assert rewards.tolist() == [0, 0, 2, 3]
        assert infos[0] == [(0, {"crashed": True}), (1, {"crashed": True})]
        assert "starting a replacement" in caplog.text
        observations, *_, truncated, infos = pool.step([NOTHING] * 4)
        assert observations[:, 1].tolist() == [1, 1, 3, 3]
        assert not truncated.any()
        assert infos is None
        pool.close()

    def test_seeds_after_a_crash_are_the_same_in_every_run(self):
        runs = []
        for _ in range(2):
            pool = started()
            runs.append([pool.step(actions(k, "exit"))[0] for k in (0, 3, 0)])
            pool.close()
        assert np.array_equal(runs[0], runs[1])
        starts = {row[0] for batch in runs[0] for row in batch}
        assert len(starts) == 4 + 2 + 2  # each replacement starts with a new seed

    def test_of_slots_in_flight_and_idle_slots(self):
        pool = started()
        pool.send([fault("exit"), NOTHING], slots=[0, 2])
        batch = pool.recv()
        assert batch.slots.tolist() == [0, 2]
        assert batch.truncated.tolist() == [True, False]
        pool.send([NOTHING], slots=[1])  # was idle when its worker was lost
        batch = pool.recv()
        assert batch.truncated.tolist() == [True]
        assert batch.raw_infos[0] == [(0, {"crashed": True})]
        pool.send([NOTHING] * 4)
        assert not pool.recv().truncated.any()
        pool.close()

    def test_an_idle_slot_reports_in_the_next_round(self):
        pool = started()
        pool.send([fault("kill")], slots=[0])
        pool.recv()
        *_, truncated, infos = pool.step([NOTHING] * 4)
        assert truncated.tolist() == [False, True, False, False]
        assert infos[0] == [(1, {"crashed": True})]
        pool.close()

    def test_a_reset_cancels_the_report(self):
        pool = started()
        pool.send([fault("kill")], slots=[0])
        pool.recv()
        pool.reset(seeds=range(4))
        assert pool.recv().raw_infos is None
        assert not pool.step([NOTHING] * 4)[3].any()
        pool.close()

    def test_same_step_mode_reports_the_last_observation(self):
        pool = started(autoreset_mode=AutoresetMode.SAME_STEP)
        before, *_ = pool.step([NOTHING] * 4)
        *_, infos = pool.step(actions(0, "exit"))
        (slot, final), (_, info) = infos[0][:2]
        assert slot == 0
        assert np.array_equal(final["final_obs"], before[0])
        assert final["final_info"] == info == {"crashed": True}
        pool.close()

    def test_are_limited(self):
        pool = started(restarts_per_minute=2)
        pool.step(actions(0, "exit"))
        pool.step(actions(0, "exit"))
        with pytest.raises(WorkerCrashedError) as info:
            pool.step(actions(0, "exit"))
        assert any("2 restarts within a minute" in note for note in info.value.__notes__)
        pool.close()

    def test_a_lost_call_raises_and_the_pool_stays_usable(self):
        pool = started()
        os.kill(pool.call("pid")[0], signal.SIGKILL)
        with pytest.raises(WorkerCrashedError, match="before it could answer"):
            pool.call("label")
        assert pool.call("label") == [0, 1, 2, 3]
        pool.close()


class EchoEnv(gymnasium.Env):
    """Returns the action that it received as its observation."""

    observation_space = spaces.Box(-100, 100, (1,), np.float64)
    action_space = spaces.Box(-100, 100, (1,), np.float64)

    def __init__(self, label):
        self.label = label

    def reset(self, *, seed=None, options=None):
        return np.zeros(1), {}

    def step(self, action):
        return np.array(action, np.float64), 0.0, False, False, {}


class WordEnv(EchoEnv):
    action_space = spaces.Tuple((WordSpace(), spaces.Discrete(2)))
    was_reset = False

    def reset(self, *, seed=None, options=None):
        self.was_reset = True
        return np.zeros(1), {}

    def step(self, action):
        assert self.was_reset
        return np.zeros(1), 0.0, False, False, {}


class TestPendingReports:
    """Slots that were idle when their worker was lost, before they are sent again."""

    def test_a_refused_step_keeps_the_reports(self):
        pool = started(WordEnv)
        kill_worker(pool, 0)
        pool.send((["word-1"], np.zeros(1, np.int64)), slots=[2])
        time.sleep(0.02)
        pool.recv()
        bad = (["word-1", "word-2", "word-3", threading.Lock()], np.zeros(4, np.int64))
        for use in (pool.step, pool.send):
            with pytest.raises(TypeError, match="pickle"):
                use(bad)
        *_, truncated, infos = pool.step((["word-1"] * 4, np.zeros(4, np.int64)))
        assert truncated.tolist() == [True, True, False, False]
        assert crashed_slots(infos) == [0, 1]
        pool.close()

    def test_a_refused_step_does_not_change_the_seeds(self):
        def first_observations(refused):
            pool = started()
            kill_worker(pool, 0)
            notice_loss(pool, 2)
            for _ in range(refused):
                pool._needs_messages()
                pool._round_message(0, 0)  # packed, but never sent
            observations = pool.step([NOTHING] * 4)[0]
            pool.close()
            return observations

        np.testing.assert_array_equal(first_observations(refused=3), first_observations(refused=0))

    def test_sending_no_slots_does_nothing(self):
        pool = started()
        kill_worker(pool, 0)
        notice_loss(pool, 2)
        pool.send(np.zeros(0, np.int64), slots=[])
        assert crashed_slots(pool.step([NOTHING] * 4)[4]) == [0, 1]
        pool.close()

    def test_actions_of_the_reporting_step_are_not_used_later(self):
        pool = started(EchoEnv)
        kill_worker(pool, 0)
        notice_loss(pool, 2, np.zeros(1))
        # Actions of another dtype are sent as objects.
        assert crashed_slots(pool.step(np.full((4, 1), 7, np.int8))[4]) == [0, 1]
        observations = pool.step(np.full((4, 1), 3.0))[0]
        assert observations.ravel().tolist() == [3.0] * 4
        pool.close()


def test_a_worker_lost_while_the_message_of_another_is_awaited_steps_its_share_again():
    pool = started()
    stopped, killed = (state.process for state in pool.worker_states())
    pool.begin_step([fault("big info")] * 4)
    time.sleep(0.5)  # both have finished, and their messages do not fit into the sockets
    os.kill(stopped, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    resume = threading.Timer(1.0, os.kill, [stopped, signal.SIGCONT])
    resume.start()
    *_, truncated, infos = pool.end_step()
    resume.join()
    assert truncated.tolist() == [False, False, True, True]
    assert crashed_slots(infos) == [2, 3]
    observations = pool.step([fault("wait")] * 4)[0]
    assert observations[:, 1].tolist() == [2, 2, 1, 1]
    pool.close()


def test_two_hanging_slots_of_a_worker_are_one_loss():
    pool = started(step_timeout=0.5)
    pool.send([fault("sleep")] * 2, slots=[0, 1])
    time.sleep(1.2)  # the stand-in of the worker starts the second slot
    assert pool.recv().truncated.tolist() == [True, True]
    assert [state.restarts for state in pool.worker_states()] == [1, 0]
    pool.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupted_replacement_is_completed(stride):
    pool = started(start="fork", restarts_per_minute=10**6)
    interrupts = 0
    for number in range(0, 5000, stride):
        kill_worker(pool, 0)
        with Lines(number) as lines:
            pool.step([NOTHING] * 4)
        if not lines.where:
            break
        interrupts += 1
        try:
            if pool.in_flight:
                pool.recv(timeout=10.0)
            pool.step([NOTHING] * 4)
            pool.step([NOTHING] * 4)
        except VectorFailedError:  # interrupted while a message was being sent
            pool.close()
            pool = started(start="fork", restarts_per_minute=10**6)
        except Exception as error:
            raise AssertionError(f"after an interrupt at {lines.where}") from error
    assert interrupts > 100 / stride
    pool.close()
