"""`ShoalVectorEnv`: attributes, seeds, partial steps, asynchronous steps, errors and crashes."""

import sys
import threading
from functools import partial
from importlib import import_module

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from tianshou.env import BaseVectorEnv

import shoal
from shoal.errors import InvalidActionError, MissingExtraError, SeedError, SlotFinishedError
from shoal.tianshou import ShoalVectorEnv, make
from shoal.vector.wrappers import VectorWrapper
from tests.tianshou.environments import Counter, Pairs


def counters(count, **options):
    options = {"backend": "inline", **options}
    return make([partial(Counter, number) for number in range(count)], **options)


def slots_of(infos):
    return [info["env_id"] for info in infos]


def test_interface_of_tianshous_vectors():
    envs = counters(3)
    assert isinstance(envs, BaseVectorEnv)
    assert (len(envs), envs.env_num, envs.is_async, envs.is_closed) == (3, 3, False, False)
    assert envs.observation_space == [Counter.observation_space] * 3
    assert envs.action_space == [Counter.action_space] * 3
    assert [metadata["note"] for metadata in envs.metadata] == ["kept"] * 3
    assert envs.spec == [None] * 3
    with pytest.raises(AttributeError):
        _ = envs.reward_range
    envs.reset()
    envs.step([1, 1], [0, 2])
    assert envs.render() == ["0@1", "1@0", "2@1"]
    envs.close()


def test_attributes_of_some_slots():
    envs = counters(3)
    envs.set_env_attr("weight", 0.5, [0, 2])
    assert envs.get_env_attr("weight") == [0.5, 0.0, 0.5]
    assert envs.get_env_attr("number", [2, 0]) == [2, 0]
    assert envs.get_env_attr("number", 1) == [1]
    envs.set_env_attr("mark", 7)
    assert envs.get_env_attr("mark", np.array([1])) == [7]
    with pytest.raises(AttributeError):
        envs.get_env_attr("missing")
    envs.close()
    kernels = make("CartPole-v1", 2)
    kernels.set_env_attr("gravity", 1.62, 1)
    assert kernels.get_env_attr("gravity") == [9.8, 1.62]
    kernels.close()


def test_infos_have_env_id_and_the_environments_infos():
    envs = counters(2)
    _, infos = envs.reset([1, 0], seed=5, options={"level": 1})
    assert infos.tolist() == [{"seed": 5, "options": "{'level': 1}"}] * 2
    *_, infos = envs.step([0, 0])
    assert infos.dtype == np.object_
    assert infos.tolist() == [{"env_id": 0}, {"env_id": 1}]
    envs.close()


def test_statistics():
    envs = counters(2, statistics=True)
    envs.reset()
    *_, infos = envs.step([0, 4])
    assert infos[0] == {"env_id": 0}
    assert infos[1]["episode"]["l"] == 1
    envs.close()


def test_seeds():
    envs = make("CartPole-v1", 2)
    assert envs.seed([4, 9]) == [[4], [9]]
    assert envs.seed() == [[None], [None]]
    first, _ = envs.reset(seed=3)
    assert (first[0] == first[1]).all()
    with pytest.raises(SeedError, match="got length=3"):
        envs.seed([1, 2, 3])
    envs.close()


def test_actions_as_tensor():
    envs = counters(2)
    envs.reset()
    *_, terminated, _, _ = envs.step(torch.tensor([4, 0]))
    assert terminated.tolist() == [True, False]
    envs.close()


@pytest.mark.parametrize(
    ("actions", "slots", "error"),
    [
        ([0], None, InvalidActionError),
        ([0, 0], [1], InvalidActionError),
        ([0, 9], None, InvalidActionError),
        ([0], [2], IndexError),
        ([0, 0], [1, 1], ValueError),
        ([0], [0.5], TypeError),
        (None, None, ValueError),
    ],
    ids=str,
)
def test_invalid_steps_do_not_step_any_environment(actions, slots, error):
    envs = counters(2)
    envs.reset()
    with pytest.raises(error):
        envs.step(actions, slots)
    assert envs.get_env_attr("steps") == [0, 0]
    assert envs.step([0, 0])[0][:, 1].tolist() == [1, 1]
    envs.close()


def test_caller_resets_finished_slots():
    envs = counters(2)
    envs.reset()
    envs.step([4, 0])
    with pytest.raises(SlotFinishedError):
        envs.step([0, 0])
    envs.step([0], [1])
    envs.reset(0)
    assert envs.step([0, 0])[0][:, 1].tolist() == [1, 3]
    envs.close()


def test_reset_after_a_failure():
    for backend in ("inline", "thread"):
        envs = counters(3, backend=backend)
        envs.reset()
        with pytest.raises(ArithmeticError):
            envs.step([0, 5], [0, 1])
        envs.reset()
        assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
        envs.close()


def test_same_step_mode_is_rejected():
    vector = shoal.make("CartPole-v1", 2, autoreset_mode="SameStep")
    with pytest.raises(ValueError, match=r"autoreset_mode=AutoresetMode\.DISABLED"):
        ShoalVectorEnv(vector)
    assert not vector.closed
    vector.close()


def test_invalid_arguments():
    with pytest.raises(TypeError, match="got CartPoleEnv"):
        ShoalVectorEnv(gymnasium.make("CartPole-v1").unwrapped)
    with pytest.raises(TypeError, match="arrays or dicts"):
        make(Pairs, 2)
    for invalid in ({"wait_num": 3}, {"wait_num": 0}, {"timeout": 0.0}):
        with pytest.raises(ValueError, match=r"wait_num must be|timeout must be"):
            make("CartPole-v1", 2, **invalid)


def test_wrapped_vector_cannot_step_some_slots():
    vector = shoal.make("CartPole-v1", 2, autoreset_mode=AutoresetMode.DISABLED)
    envs = ShoalVectorEnv(VectorWrapper(vector))
    envs.reset()
    envs.step([0, 1])
    with pytest.raises(ValueError, match="all of its slots"):
        envs.step([0], [1])
    envs.close()


def test_after_closing():
    envs = counters(2)
    envs.reset()
    envs.close()
    envs.close()
    assert envs.is_closed
    assert envs.vector.closed
    for call in (envs.reset, envs.seed, partial(envs.step, [0, 0]), envs.render):
        with pytest.raises(ClosedEnvironmentError):
            call()


class TestAsynchronousSteps:
    def test_wait_num_does_not_wait_for_slow_slots(self):
        gates = [None, threading.Event(), None, None]
        env_fns = [partial(Counter, number, gate) for number, gate in enumerate(gates)]
        envs = make(env_fns, wait_num=3, backend="thread", workers=4)
        assert envs.is_async
        envs.reset()
        observations, *_, infos = envs.step([0] * 4)
        assert sorted(slots_of(infos)) == [0, 2, 3]
        assert observations[:, 0].tolist() == slots_of(infos)
        assert envs.waiting_id == [1]
        assert envs.ready_id == [0, 2, 3]
        *_, infos = envs.step([0, 0, 0], slots_of(infos))
        assert sorted(slots_of(infos)) == [0, 2, 3]
        gates[1].set()
        *_, infos = envs.step(None)
        assert slots_of(infos) == [1]
        assert envs.waiting_id == []
        envs.close()

    def test_slots_in_flight_cannot_be_used(self):
        envs = counters(3, wait_num=1)
        envs.reset()
        *_, infos = envs.step([0, 0, 0])
        assert slots_of(infos) == [0]
        for call in (
            partial(envs.step, [0, 0], [0, 2]),
            partial(envs.reset, 2),
            partial(envs.get_env_attr, "steps", [2]),
            partial(envs.set_env_attr, "weight", 1.0, 2),
            envs.render,
            envs.seed,
        ):
            with pytest.raises(AlreadyPendingCallError, match=r"slot [12] is in flight"):
                call()
        assert envs.get_env_attr("steps", 0) == [1]
        envs.reset(0)
        *_, infos = envs.step(None, [2, 1])
        assert slots_of(infos) == [2, 1]
        with pytest.raises(NoAsyncCallError, match="no slot is in flight"):
            envs.step(None)
        envs.close()

    def test_reset_of_all_slots_discards_steps_in_flight(self):
        envs = counters(3, wait_num=1)
        envs.reset()
        envs.step([0, 0, 0])
        envs.reset()
        assert envs.waiting_id == []
        *_, infos = envs.step([0], [2])
        assert slots_of(infos) == [2]
        envs.close()

    def test_timeout_returns_finished_slots(self):
        gate = threading.Event()
        gates = [None, gate, gate]
        env_fns = [partial(Counter, number, gate) for number, gate in enumerate(gates)]
        envs = make(env_fns, timeout=0.05, backend="thread", workers=3)
        assert envs.is_async
        envs.reset()
        *_, infos = envs.step([0, 0, 0])
        assert slots_of(infos) == [0]
        timer = threading.Timer(0.2, gate.set)
        timer.start()
        *_, infos = envs.step(None)  # waits for at least one slot
        assert gate.is_set()
        assert set(slots_of(infos)) <= {1, 2}
        timer.join()
        envs.close()

    def test_wait_num_larger_than_the_number_in_flight(self):
        envs = counters(3, wait_num=2)
        envs.reset()
        *_, infos = envs.step([0], [1])
        assert slots_of(infos) == [1]
        envs.close()


@pytest.mark.parametrize("wait_num", [None, 1])
def test_crash_truncates_with_the_last_observation(wait_num):
    env_fns = [partial(Counter, number) for number in range(2)]
    envs = make(env_fns, wait_num=wait_num, backend="process", workers=2, on_crash="restart")
    envs.reset()
    for _ in range(3):
        envs.step([0], [0])
    observations, _, terminated, truncated, infos = envs.step([6], [0])
    assert observations.tolist() == [[0, 3]]
    assert (terminated.item(), truncated.item()) == (False, True)
    assert infos[0]["crashed"] is True
    envs.reset(0)
    assert envs.step([0], [0])[0].tolist() == [[0, 1]]
    envs.close()


def test_missing_tianshou_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tianshou.env", None)
    monkeypatch.delitem(sys.modules, "shoal.tianshou")
    with pytest.raises(MissingExtraError, match=r'pip install "shoal\[tianshou\]"'):
        import_module("shoal.tianshou")
