"""Hosted devices: status, number of slots, partial requests."""

import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import RefusedError, StepResultError
from shoal.remote import Feedback, Hosted, Status
from tests.remote.peers import LONG, Cell, WakeableCell, wait_until
from tests.remote.serving import connected, served


class Reporting:
    """A device whose actions are the status to return, and whether the episode ends.

    An observation is (slot, steps, resets).
    """

    STATUSES = list(Status)
    single_observation_space = spaces.Box(-1, 1e6, (3,), np.float64)
    single_action_space = spaces.MultiDiscrete([len(STATUSES), 2])
    num_envs = len(STATUSES)

    def __init__(self):
        self.seen = np.zeros((self.num_envs, 3))
        self.seen[:, 0] = range(self.num_envs)

    def reset_slots(self, slots, seeds, options):
        self.seen[slots, 2] += 1
        return [Feedback(self.seen[slot]) for slot in slots]

    def step_slots(self, slots, actions):
        self.seen[slots, 1] += 1
        return [
            Feedback(
                self.seen[slot],
                reward=slot + 0.5,
                terminated=bool(ends),
                info={"slot": slot},
                status=self.STATUSES[status],
            )
            for slot, (status, ends) in zip(slots, actions, strict=True)
        ]

    def close(self):
        pass


EACH_STATUS = np.array([[status, 0] for status in range(len(Status))])


@pytest.mark.parametrize("info_format", ["dict", "list"])
@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("how", ["step", "send"])
def test_status_of_each_slot(how, on_lost, info_format):
    envs = connected(Reporting, url="tcp://127.0.0.1:0", on_lost=on_lost, info_format=info_format)
    envs.reset(seed=0)
    if how == "step":
        observations, rewards, _, _, infos = envs.step(EACH_STATUS)
    else:
        order = [3, 0, 4, 1, 2]
        envs.send(EACH_STATUS[order], order)
        _, observations, rewards, _, _, infos = envs.recv(slots=range(5))
    assert observations.tolist() == [[slot, 1, 1] for slot in range(5)]
    assert rewards.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    statuses = ["ok", "not executed", "timeout", "error", "duplicate observation"]
    if info_format == "dict":
        assert infos["_status"].tolist() == [False, True, True, True, True]
        assert infos["status"][1:].tolist() == statuses[1:]
        assert infos["slot"].tolist() == list(range(5))
    else:
        assert infos[0] == {"slot": 0}
        assert [info["status"] for info in infos[1:]] == statuses[1:]
    assert "status" not in str(envs.step(EACH_STATUS * 0)[4])
    envs.close()


@pytest.mark.parametrize("how", ["step", "send"])
def test_not_executed_does_not_end_the_episode(how):
    envs = connected(Reporting, url="tcp://127.0.0.1:0")
    envs.reset(seed=0)

    def play(actions):
        if how == "step":
            return envs.step(actions)
        envs.send(actions)
        return envs.recv()[1:]

    assert play(EACH_STATUS + np.array([0, 1]))[2].all()
    observations = play(EACH_STATUS * 0)[0]
    assert observations[:, 1:].tolist() == [[1, 2], [2, 1], [2, 1], [1, 2], [1, 2]]
    envs.close()


def test_not_executed_reset_is_repeated():
    class Jammed(Reporting):
        is_jammed = False

        def reset_slots(self, slots, seeds, options):
            if self.is_jammed:
                return [Feedback(self.seen[slot], status=Status.NOT_EXECUTED) for slot in slots]
            return super().reset_slots(slots, seeds, options)

    device = Jammed()
    envs = connected(lambda: device, url="tcp://127.0.0.1:0")
    envs.reset(seed=0)
    goes_on = EACH_STATUS * 0
    assert envs.step(goes_on + np.array([0, 1]))[2].all()
    device.is_jammed = True
    observations, _, _, _, infos = envs.step(goes_on)
    assert infos["status"].tolist() == ["not executed"] * 5
    assert (observations[:, 1:] == [1, 1]).all()
    device.is_jammed = False
    assert (envs.step(goes_on)[0][:, 1:] == [1, 2]).all()
    assert (envs.step(goes_on)[0][:, 1:] == [2, 2]).all()
    envs.close()


@pytest.mark.parametrize("requested", [1, 3, 7])
def test_set_num_envs(requested):
    class Adjustable(Cell):
        counts = []

        def set_num_envs(self, count):
            self.counts.append(count)

    with served(Hosted(Adjustable, exclusive=True)) as url:
        with shoal.connect(url, num_envs=requested) as envs:
            assert envs.num_envs == requested
            assert envs.reset(seed=0)[0].tolist() == [[slot, 0] for slot in range(requested)]
            assert envs.step([0] * requested)[0].tolist() == [
                [slot, 1] for slot in range(requested)
            ]
        assert Adjustable.counts == ([] if requested == Cell.num_envs else [requested])
        with shoal.connect(url) as envs:
            assert envs.num_envs == Cell.num_envs


def test_fixed_num_envs_rejects_other_numbers():
    cells = []

    def make():
        cells.append(Cell())
        return cells[-1]

    with served(Hosted(make, exclusive=True)) as url:
        with pytest.raises(RefusedError, match="5 slots were requested, but the factory made 3"):
            shoal.connect(url, num_envs=5)
        assert wait_until(lambda: cells[0].is_closed == 1)
        shoal.connect(url, num_envs=3).close()  # the lease was released


def test_set_num_envs_may_raise():
    class Small(Cell):
        def set_num_envs(self, count):
            raise ValueError(f"there are two arms, not {count}")

    with served(Small) as url, pytest.raises(RefusedError, match="there are two arms, not 9"):
        shoal.connect(url, num_envs=9)


def test_invalid_feedback_is_an_error_of_its_slot():
    class Broken(Reporting):
        def step_slots(self, slots, actions):
            feedbacks = super().step_slots(slots, actions)
            return [
                None if slot == 2 else each for slot, each in zip(slots, feedbacks, strict=True)
            ]

    envs = connected(Broken)
    envs.reset(seed=0)
    with pytest.raises(StepResultError, match="expected a Feedback") as caught:
        envs.step(EACH_STATUS)
    assert "in slot 2 of 5" in "".join(caught.value.__notes__)
    assert envs.reset(seed=0)[0].shape[0] == 5  # nothing is in flight
    envs.close()


def busy_and_queued(cell, **deadlines):
    """A vector whose slot 0 keeps the device busy while slots 1 and 2 wait in one request."""
    envs = connected(lambda: cell)
    envs.reset(seed=0)
    envs.send([LONG], [0])
    assert cell.running.wait(20.0)
    envs.send([1, 2], [1, 2], **deadlines)
    return envs


def test_cancel_one_slot_of_a_waiting_request():
    cell = WakeableCell()
    envs = busy_and_queued(cell)
    envs.cancel([1])
    assert envs.recv(slots=[1], timeout=20.0).infos["status"].tolist() == ["not executed"]
    cell.woken.set()
    assert sorted(envs.recv(timeout=20.0).slots.tolist()) == [0, 2]
    assert [slots for slots, _ in cell.executed] == [[0], [2]]
    envs.close()


def test_deadline_of_one_slot_of_a_waiting_request():
    cell = WakeableCell()
    envs = busy_and_queued(cell, deadlines=[0.1, 60.0])
    assert envs.recv(slots=[1], timeout=20.0).infos["status"].tolist() == ["not executed"]
    cell.woken.set()
    assert sorted(envs.recv(timeout=20.0).slots.tolist()) == [0, 2]
    assert [slots for slots, _ in cell.executed] == [[0], [2]]
    envs.close()
