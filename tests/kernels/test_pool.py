"""The pool of kernels keeps the contract, whatever the threads do."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from gymnasium.vector import AutoresetMode

import shoal
from shoal._envs import builtin_kernel
from shoal.errors import InvalidActionError, ResetMaskError, SlotFinishedError
from shoal.pools import KernelPool
from shoal.testing import PoolConformance, assert_identical
from tests.kernels.alarm import Alarm, ringing


class TestCartPole(PoolConformance):
    def make_pool(self, num_envs, **options):
        return KernelPool(builtin_kernel("CartPole-v1", {}), num_envs, workers=0, **options)


class TestBlackjackOnThreads(PoolConformance):
    """Observations of several leaves."""

    def make_pool(self, num_envs, **options):
        return KernelPool(builtin_kernel("Blackjack-v1", {}), num_envs, workers=3, **options)


class TestTaxiOfManySlots(PoolConformance):
    """Enough of them for the threads to be woken, and infos with every step."""

    num_envs = 3000
    steps = 12

    def make_pool(self, num_envs, **options):
        # Views of many slots are shown in short; the tests compare what is shown.
        kernel = builtin_kernel("Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3", {})
        return KernelPool(kernel, num_envs, workers=2, **options)

    def actions(self, pool, count):
        rng = np.random.default_rng(3)
        batches = rng.integers(0, 6, (min(count, 400), pool.num_envs))
        return [batches[k % len(batches)] for k in range(count)]

    def test_slots_stepped_alone_do_as_they_do_together(self):
        together, alone = self.started(), self.started()
        groups = np.array_split(np.random.default_rng(1).permutation(self.num_envs), 7)
        for action in self.actions(together, 5):
            expected = together.step(action)
            for group in groups:
                alone.send(action[group], slots=group)
            seen = np.zeros(self.num_envs, np.bool_)
            while not seen.all():
                batch = alone.recv(min_slots=1)
                assert not seen[batch.slots].any()
                seen[batch.slots] = True
                assert_identical(batch.rewards, expected[1][batch.slots])
                assert_identical(batch.observations, expected[0][batch.slots])
                for key, column in batch.infos.columns.items():
                    assert_identical(column, expected[4].columns[key][batch.slots])
        together.close()
        alone.close()


def trajectory(name, workers, num_envs=2500, steps=30, **options):
    with shoal.make(
        name, num_envs, backend="kernel", workers=workers, statistics=True, **options
    ) as envs:
        batches = [envs.reset(seed=9)]
        rng = np.random.default_rng(2)
        for _ in range(steps):
            if isinstance(envs.single_action_space, gymnasium.spaces.Discrete):
                actions = rng.integers(0, envs.single_action_space.n, num_envs)
            else:
                actions = rng.uniform(-2, 2, (num_envs, 1)).astype(np.float32)
            *arrays, infos = envs.step(actions)
            infos.get("episode", {}).pop("t", None)  # that is the clock's
            batches.append((*arrays, infos))
    return batches


@pytest.mark.parametrize("seeding", ["adjacent", "counter"])
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
def test_the_number_of_threads_makes_no_difference(name, seeding):
    alone = trajectory(name, 0, seeding=seeding, autoreset_mode="SameStep")
    for workers in (1, 3):
        shared = trajectory(name, workers, seeding=seeding, autoreset_mode="SameStep")
        for one, other in zip(shared, alone, strict=True):
            assert_identical(one, other)


def test_a_vector_tells_what_it_is():
    with shoal.make("CartPole-v1", 8) as envs:
        assert repr(envs) == "KernelVectorEnv(CartPole-v1, num_envs=8)"
        assert envs.plan.backend == "kernel"
        assert "kernel" in str(envs.plan)
        again = shoal.make(envs.spec)
        assert isinstance(again, type(envs))
        assert again.num_envs == 8
        again.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"backend": "python"},
        {"backend": "inline"},
        {"wrappers": [gymnasium.wrappers.TimeAwareObservation]},
        {"on_crash": "restart"},
        {"observation_mode": "different"},
    ],
    ids=lambda arguments: next(iter(arguments)) + "=" + str(next(iter(arguments.values())))[:9],
)
def test_what_kernels_cannot_do_takes_gymnasiums_class(arguments):
    with shoal.make("CartPole-v1", 2, **arguments) as envs:
        assert envs.plan.backend != "kernel"
        envs.reset(seed=0)


class LikeCartPole(CartPoleEnv):
    """A class of a user's, with a rule of its own."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 7.0, terminated, truncated, info


def test_a_users_class_under_gymnasiums_id_is_the_users():
    original = gymnasium.registry["CartPole-v1"]
    try:
        gymnasium.registry.pop("CartPole-v1")
        gymnasium.register("CartPole-v1", LikeCartPole, max_episode_steps=500)
        with shoal.make("CartPole-v1", 2, backend="inline") as envs:
            envs.reset(seed=0)
            assert envs.step([0, 1])[1].tolist() == [7.0, 7.0]
        with shoal.make("CartPole-v1", 2) as envs:
            assert envs.plan.backend != "kernel"
    finally:
        gymnasium.registry["CartPole-v1"] = original


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            {"backend": "kernel", "wrappers": [gymnasium.wrappers.FlattenObservation]},
            "no kernel for 'CartPole-v1' with wrappers, which backend='kernel' needs",
        ),
        ({"backend": "kernel", "start": "fork"}, "start goes with backend='process'"),
        ({"backend": "kernel", "workers": -1}, "workers must be"),
        ({"backend": "process", "thread_affinity_offset": 1}, "goes with backend='kernel'"),
        ({"backend": "inline", "seeding": "counter"}, "goes with backend='kernel'"),
        ({"thread_affinity_offset": "one"}, "number of a core"),
        ({"backend": "kernel", "caller_works": False}, "the caller works as well"),
    ],
)
def test_options_that_do_not_go_together(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        shoal.make("CartPole-v1", 2, **arguments)


def test_an_environment_without_a_kernel_says_so():
    with pytest.raises(ValueError, match=r"no kernel for 'phys2d/CartPole-v1'"):
        shoal.make("phys2d/CartPole-v1", 2, backend="kernel")


def test_wrong_actions_step_nothing():
    with shoal.make("CartPole-v1", 4000) as envs:
        envs.reset(seed=0)
        before = envs.save()
        actions = np.zeros(4000, np.int64)
        actions[3210] = 2
        with pytest.raises(InvalidActionError, match=r"slot 3210: action is 2.*from 0 to 1"):
            envs.step(actions)
        with pytest.raises(InvalidActionError, match=r"got shape \(3999,\)"):
            envs.step(actions[1:])
        with pytest.raises(TypeError, match="float64"):
            envs.step(actions.astype(np.float64))
        assert np.array_equal(envs.save(), before)


def test_a_slot_that_is_about_to_be_reset_may_be_sent_anything():
    with shoal.make("CartPole-v1", 3) as envs:
        envs.reset(seed=0)
        envs.state["x"][1] = 5.0
        assert envs.step([0, 0, 0])[2].tolist() == [False, True, False]
        envs.step([1, -99, 1])
        with pytest.raises(InvalidActionError, match="slot 1"):
            envs.step([1, -99, 1])


def test_a_first_step_needs_a_reset():
    with shoal.make("CartPole-v1", 3) as envs:
        with pytest.raises(ResetNeeded, match="slot 0 has never been reset"):
            envs.step([0, 0, 0])
        envs.pool.reset([0, 2])
        envs.pool.recv()
        with pytest.raises(ResetNeeded, match="slot 1"):
            envs.step([0, 0, 0])
        with pytest.raises(ResetNeeded, match="slot 1"):
            envs.send([0], slots=[1])
        with pytest.raises(ResetMaskError, match="slot 1"):
            envs.pool.latest()
        envs.send([0, 1], slots=[2, 0])
        assert envs.recv().slots.tolist() == [2, 0]


def test_disabled_autoreset_refuses_finished_slots():
    with shoal.make("CartPole-v1", 2, autoreset_mode="Disabled") as envs:
        envs.reset(seed=0)
        envs.state["x"][1] = 5.0
        assert envs.step([0, 0])[2].tolist() == [False, True]
        with pytest.raises(SlotFinishedError, match="slot 1"):
            envs.step([0, 0])
        observations, _ = envs.reset(options={"reset_mask": np.array([False, True])})
        assert np.abs(observations[1]).max() <= 0.05
        envs.step([0, 0])


def test_states_are_read_and_written_as_records():
    with shoal.make("CartPole-v1", 5) as envs:
        observations, _ = envs.reset(seed=1)
        assert envs.state.dtype.names == ("x", "x_dot", "theta", "theta_dot")
        assert_identical(envs.state["theta"].astype(np.float32), observations[:, 2])
        envs.state["x"] = np.arange(5) / 10
        moved = envs.step([0] * 5)[0]
        assert np.allclose(moved[:, 0], np.arange(5) / 10, atol=0.01)
        envs.send([0] * 5)
        with pytest.raises(AlreadyPendingCallError):
            envs.state  # noqa: B018
        envs.recv()


def test_slots_are_saved_and_restored_with_their_randomness():
    with (
        shoal.make("FrozenLake-v1", 6, statistics=True) as envs,
        shoal.make("FrozenLake-v1", 2) as other,
    ):
        envs.reset(seed=1)
        for _ in range(3):
            envs.step(np.full(6, 2))
        saved = envs.save()
        first = [envs.step(np.full(6, 1)) for _ in range(30)]
        envs.restore(saved)
        for expected in first:
            got = envs.step(np.full(6, 1))
            for infos in (got[4], expected[4]):
                infos.get("episode", {}).pop("t", None)
            assert_identical(got, expected)
        # Into another vector, and to other slots.
        other.reset(seed=8)
        other.restore(saved[[4, 5]])
        envs.restore(saved)
        for _ in range(10):
            one, two = envs.step(np.full(6, 1)), other.step(np.full(2, 1))
            assert_identical(two[0], one[0][4:])
        with pytest.raises(ValueError, match="expected 1 saved slots"):
            envs.restore(saved, slots=[3])


def test_vectors_are_copied_and_pickled(tmp_path):
    import pickle
    from copy import deepcopy

    envs = shoal.make("Pendulum-v1", 3, g=9.0)
    envs.reset(seed=4)
    envs.set_attr("g", [1.0, 2.0, 3.0])
    action = np.ones((3, 1), np.float32)
    envs.step(action)
    for copied in (deepcopy(envs), pickle.loads(pickle.dumps(envs))):
        assert copied.get_attr("g") == (1.0, 2.0, 3.0)
        before = envs.save()
        assert_identical(copied.step(action), envs.step(action))
        envs.restore(before)


def test_attributes_are_those_of_a_slot():
    with shoal.make("Pendulum-v1", 3) as envs:
        envs.reset(seed=[5, 6, 7])
        assert envs.get_attr("g") == (10.0, 10.0, 10.0)
        assert envs.get_attr("max_speed") == (8.0, 8.0, 8.0)
        assert envs.call("np_random_seed") == (5, 6, 7)
        envs.set_attr("theta", [0.1, 0.2, 0.3])
        assert envs.get_attr("theta") == (0.1, 0.2, 0.3)
        envs.set_attr("label", ["a", "b", "c"])
        assert envs.get_attr("label") == ("a", "b", "c")
        with pytest.raises(AttributeError, match="nonsense"):
            envs.get_attr("nonsense")
        with pytest.raises(AttributeError, match="built in"):
            envs.set_attr("screen_dim", 3)
        with pytest.raises(ValueError, match="g must be a number"):
            envs.set_attr("g", "heavy")


def test_parameters_may_differ_from_slot_to_slot():
    worlds = [9.81, 1.62, 3.72, 9.81]
    with (
        shoal.make("Pendulum-v1", 4) as envs,
        shoal.make([partial(gymnasium.make, "Pendulum-v1", g=g) for g in worlds]) as reference,
    ):
        envs.reset(seed=1)
        reference.reset(seed=1)
        envs.set_attr("g", worlds)
        for _ in range(30):
            action = reference.action_space.sample()
            got, expected = envs.step(action), reference.step(action)
            assert np.allclose(got[0], expected[0], rtol=1e-6, atol=1e-6)
        envs.set_attr("g", 4.0)
        assert envs.get_attr("g") == (4.0,) * 4


def test_time_limits_and_statistics():
    with shoal.make("CartPole-v1", 2, max_episode_steps=3, statistics=True) as envs:
        envs.reset(seed=0)
        for _ in range(2):
            assert not envs.step([0, 1])[3].any()
        *_, truncated, infos = envs.step([0, 1])
        assert truncated.all()
        assert infos["episode"]["r"].tolist() == [3.0, 3.0]
        assert infos["episode"]["l"].tolist() == [3, 3]
        assert (infos["episode"]["t"] >= 0).all()


@pytest.mark.parametrize("form", ["list", "pre-1.0"])
def test_infos_in_their_other_forms(form):
    mode = "SameStep" if form == "pre-1.0" else "NextStep"
    made = [
        shoal.make("FrozenLake-v1", 5, backend=b, info_format=form, autoreset_mode=mode)
        for b in ("inline", "kernel")
    ]
    for envs in made:
        envs.reset(seed=3)
    for _ in range(60):
        action = made[0].action_space.sample()
        (*_, one), (*_, other) = (envs.step(action) for envs in made)
        if form == "list":
            assert one == other
        else:
            assert list(one) == list(other)
            for key in ("final_observation", "final_info"):
                assert one.get(key) == other.get(key)


def test_first_come_batches_while_others_are_in_flight():
    with shoal.make("Acrobot-v1", 600, batch_size=200, workers=2) as envs:
        envs.reset(seed=0)
        envs.send(np.ones(600, np.int64))
        counts = np.zeros(600, np.int64)
        for _ in range(30):
            batch = envs.recv()
            assert len(batch.slots) == 200
            counts[batch.slots] += 1
            envs.send(np.ones(200, np.int64), slots=batch.slots)
        assert envs.pool.in_flight == 600
        envs.pool.drop()
        assert envs.pool.in_flight == 0
        assert counts.sum() == 6000
        assert counts.min() > 0


def test_a_group_is_waited_for_while_another_is_in_flight():
    with shoal.make("CartPole-v1", 8, workers=1) as envs, shoal.make("CartPole-v1", 8) as plain:
        envs.reset(seed=0)
        plain.reset(seed=0)
        even, odd = np.arange(0, 8, 2), np.arange(1, 8, 2)
        envs.send(np.ones(4, np.int64), slots=even)
        envs.send(np.zeros(4, np.int64), slots=odd)
        expected = plain.step([1, 0] * 4)[0]
        assert_identical(envs.recv(slots=odd[::-1]).observations, expected[odd[::-1]])
        assert_identical(envs.recv(slots=even).observations, expected[even])


def test_a_second_thread_is_refused_while_a_step_is_under_way():
    with shoal.make("Acrobot-v1", 20_000) as envs:
        envs.reset(seed=0)
        refused = []
        stop = threading.Event()

        def meddle():
            while not stop.is_set():
                try:
                    envs.pool.latest([0])
                except RuntimeError as error:
                    refused.append(error)

        thread = threading.Thread(target=meddle)
        thread.start()
        for _ in range(100):
            try:
                envs.step(np.ones(20_000, np.int64))
            except RuntimeError as error:
                refused.append(error)
            if refused:
                break
        stop.set()
        thread.join()
        assert refused
        assert "already being stepped" in str(refused[0])
        envs.step(np.ones(20_000, np.int64))


def thread_count():
    """Threads that are not Python's: one of those may be left by another test, and end now."""
    return len(os.listdir("/proc/self/task")) - threading.active_count()


def test_threads_are_started_when_needed_and_end_with_the_vector():
    before = thread_count()
    for _ in range(5):
        envs = shoal.make("CartPole-v1", 4000, workers=3)
        envs.reset(seed=0)
        for _ in range(3):
            envs.step(np.ones(4000, np.int64))
        assert thread_count() == before + 3
        envs.close()
        assert thread_count() == before
    with shoal.make("CartPole-v1", 4, workers=3) as small:
        for _ in range(20):
            small.reset(seed=0)
        small.step([1, 1, 1, 1])
        assert thread_count() == before
    envs = shoal.make("CartPole-v1", 4000, workers=3)
    envs.reset(seed=0)
    envs.send(np.ones(4000, np.int64))
    del envs
    assert thread_count() == before


def test_threads_are_bound_to_cores():
    for arguments in ({"pin": True}, {"thread_affinity_offset": 0}):
        before = set(os.listdir("/proc/self/task"))
        with shoal.make("CartPole-v1", 4000, backend="kernel", workers=2, **arguments) as envs:
            envs.reset(seed=0)
            envs.step(np.ones(4000, np.int64))
            workers = set(os.listdir("/proc/self/task")) - before
            assert len(workers) == 2
            for worker in workers:
                assert len(os.sched_getaffinity(int(worker))) == 1


def test_a_vector_survives_a_fork():
    with shoal.make("CartPole-v1", 5000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.ones(5000, np.int64)
        for _ in range(3):
            envs.step(actions)
        envs.send(actions)  # also with work in flight
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                total = envs.recv().observations.sum()
                for _ in range(5):
                    total += envs.step(actions)[0].sum()
                envs.close()
                status = 0 if np.isfinite(total) else 2
            finally:
                os._exit(status)
        mine = envs.recv().observations.sum()
        for _ in range(5):
            mine += envs.step(actions)[0].sum()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_forks_while_threads_are_at_work():
    with shoal.make("CartPole-v1", 5000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.ones(5000, np.int64)
        children = []
        for _ in range(20):
            envs.send(actions)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                envs.recv()
                os._exit(0)
            children.append(child)
            envs.recv()
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_interpreter_ends_while_threads_are_at_work():
    script = """
import numpy as np, shoal
envs = shoal.make("Acrobot-v1", 20000, workers=3)
envs.reset(seed=0)
envs.send(np.ones(20000, np.int64))
print("sent")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "sent\n"
    assert ended.stderr == ""


def step_often(envs, actions):
    for _ in range(10_000):
        envs.step(actions)


def test_ctrl_c_arrives_and_the_vector_goes_on():
    with shoal.make("Acrobot-v1", 20_000) as envs:
        envs.reset(seed=0)
        actions = np.ones(20_000, np.int64)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                step_often(envs, actions)
        finally:
            signal.signal(signal.SIGINT, handler)
            timer.join()
        envs.step(actions)


def test_opening_and_closing_leaves_nothing_behind():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cycle():
        with shoal.make("CartPole-v1", 2000, workers=2) as envs:
            envs.reset(seed=0)
            envs.step(np.ones(2000, np.int64))

    for _ in range(30):
        cycle()
    threads, files, memory = thread_count(), len(os.listdir("/proc/self/fd")), resident()
    for _ in range(150):
        cycle()
    assert thread_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 20e6


def test_views_rotate():
    with shoal.make("CartPole-v1", 3, copy=False) as envs:
        envs.reset(seed=0)
        first = envs.step([1, 1, 1])[0]
        kept = first.copy()
        envs.step([1, 1, 1])
        assert_identical(first, kept)
        arrays = {id(envs.step([1, 1, 1])[0].base) for _ in range(9)}
        assert len(arrays) <= 3


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_statistics_equal_those_of_python_environments(mode):
    made = [
        shoal.make("Blackjack-v1", 9, backend=b, statistics=True, autoreset_mode=mode)
        for b in ("inline", "kernel")
    ]
    for envs in made:
        envs.reset(seed=2)
    for _ in range(50):
        action = made[0].action_space.sample()
        results = [envs.step(action) for envs in made]
        one, other = (dict(result[4].get("episode", {})) for result in results)
        assert one.keys() == other.keys()
        for key in one.keys() - {"t"}:
            assert_identical(one[key], other[key])
        done = results[0][2] | results[0][3]
        if mode is AutoresetMode.DISABLED and done.any():
            for envs in made:
                envs.reset(options={"reset_mask": done})


def test_waiting_can_be_limited():
    with shoal.make("Acrobot-v1", 20_000, workers=1) as envs:
        envs.reset(seed=0)
        envs.send(np.ones(20_000, np.int64))
        begun = time.monotonic()
        try:
            envs.recv(timeout=0.0)
        except TimeoutError as error:
            assert "0.0 seconds" in str(error)  # noqa: PT017 - a fast machine may be done
        assert time.monotonic() - begun < 5
        assert envs.pool.in_flight in (0, 20_000)
        if envs.pool.in_flight:
            assert len(envs.recv().slots) == 20_000


def test_an_interrupted_step_is_finished_before_the_next_begins():
    # A handler raises while the threads are at work; the next step must not change its actions.
    with shoal.make("Acrobot-v1", 200_000) as envs, shoal.make("Acrobot-v1", 200_000) as calm:
        envs.reset(seed=0)
        calm.reset(seed=0)
        ones, twos = np.zeros(200_000, np.int64), np.full(200_000, 2)
        with ringing(0.02), pytest.raises(Alarm):
            envs.step(ones)
        calm.step(ones)
        assert_identical(envs.step(twos), calm.step(twos))


def test_two_threads_cannot_send_the_same_slot():
    with shoal.make("CartPole-v1", 4) as envs:
        envs.reset(seed=0)
        sent, refused = [], []
        barrier = threading.Barrier(2)

        def send():
            barrier.wait()
            try:
                envs.send([1], slots=[2])
                sent.append(1)
            except (AlreadyPendingCallError, RuntimeError):
                refused.append(1)

        for _ in range(200):
            threads = [threading.Thread(target=send) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            envs.recv()
        assert len(sent) == len(refused) == 200


def test_asking_again_and_again_comes_to_an_end():
    for count in (3, 3000):
        with shoal.make("CartPole-v1", count, backend="kernel", workers=0) as envs:
            envs.reset(seed=0)
            envs.send(np.ones(count, np.int64))
            for _ in range(10_000):
                try:
                    assert len(envs.recv(timeout=0).slots) == count
                    break
                except TimeoutError:
                    continue
            assert envs.pool.in_flight == 0
            envs.send(np.ones(count, np.int64))
            assert len(envs.recv(timeout=float("inf")).slots) == count


def test_a_thread_that_steps_while_the_interpreter_ends():
    script = """
import threading, time
import numpy as np, shoal
envs = shoal.make("Acrobot-v1", 3000)
envs.reset(seed=0)
def step():
    while True:
        try:
            envs.step(np.ones(3000, np.int64))
        except shoal.errors.StoppedVectorError:
            return
import shoal.errors
threading.Thread(target=step, daemon=True).start()
time.sleep(0.3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_another_kernel_has_saved_is_refused():
    with shoal.make("FrozenLake8x8-v1", 2) as lake, shoal.make("CliffWalking-v1", 2) as cliff:
        lake.reset(seed=0)
        cliff.reset(seed=0)
        with pytest.raises(ValueError, match="slot 0 was not saved by this kernel"):
            cliff.restore(lake.save())
        cliff.restore(np.frombuffer(cliff.save().tobytes(), np.uint8).reshape(2, -1))
    fresh = shoal.make("CartPole-v1", 2)
    before = fresh.save()
    fresh.reset(seed=0)
    fresh.restore(before)
    with pytest.raises(ResetNeeded):
        fresh.step([0, 0])


def test_copies_know_their_seeds_and_whether_they_are_closed():
    from copy import deepcopy

    envs = shoal.make("CartPole-v1", 2)
    envs.reset(seed=[5, 6])
    assert deepcopy(envs).np_random_seed == (5, 6)
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        deepcopy(envs).reset()


def test_cores_that_there_are_not():
    with pytest.raises(ValueError, match=r"thread_affinity_offset is 1000000, but there are \d+"):
        shoal.make("CartPole-v1", 2, thread_affinity_offset=1_000_000)
    with pytest.raises(TypeError, match="a vector is of one kernel"):
        shoal.make([builtin_kernel("CartPole-v1", {})] * 2)


def test_drawing_can_be_interrupted():
    with shoal.make("CartPole-v1", 150, render_mode="rgb_array", workers=2) as envs:
        envs.reset(seed=0)
        whole = envs.render()[149]
        with ringing(0.005), pytest.raises(Alarm):
            envs.render_tiled()
        assert_identical(envs.render()[149], whole)


def test_a_wrong_seed_changes_no_other():
    with shoal.make("CartPole-v1", 2) as envs:
        envs.reset(seed=[5, 6])
        with pytest.raises(ValueError, match="must not be negative"):
            envs.pool.reset(seeds=[1, -1])
        assert envs.np_random_seed == (5, 6)


def test_slots_that_are_not_in_flight_are_not_waited_for():
    with shoal.make("CartPole-v1", 4) as envs:
        envs.reset(seed=0)
        envs.send([1, 1], slots=[3, 1])
        with pytest.raises(gymnasium.error.NoAsyncCallError, match="slot 2 is not in flight"):
            envs.recv(slots=[3, 2])
        assert envs.recv(slots=[1, 3]).slots.tolist() == [1, 3]
