"""The pool of kernels: contract, options, state and batches."""

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


class TestCartPole(PoolConformance):
    def make_pool(self, num_envs, **options):
        return KernelPool(builtin_kernel("CartPole-v1", {}), num_envs, workers=0, **options)


class TestBlackjackOnThreads(PoolConformance):
    """The contract with observations of several leaves."""

    def make_pool(self, num_envs, **options):
        return KernelPool(builtin_kernel("Blackjack-v1", {}), num_envs, workers=3, **options)


class TestTaxiOfManySlots(PoolConformance):
    """The contract with enough slots to use the threads, and infos in every step."""

    num_envs = 3000
    steps = 12

    def make_pool(self, num_envs, **options):
        # The repr of large views is abbreviated, and the tests compare reprs.
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
            infos.get("episode", {}).pop("t", None)  # wall-clock time
            batches.append((*arrays, infos))
    return batches


@pytest.mark.parametrize("seeding", ["adjacent", "counter"])
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
def test_results_do_not_depend_on_the_number_of_threads(name, seeding):
    alone = trajectory(name, 0, seeding=seeding, autoreset_mode="SameStep")
    for workers in (1, 3):
        shared = trajectory(name, workers, seeding=seeding, autoreset_mode="SameStep")
        for one, other in zip(shared, alone, strict=True):
            assert_identical(one, other)


def test_repr_plan_and_spec():
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
def test_unsupported_arguments_use_the_python_environment(arguments):
    with shoal.make("CartPole-v1", 2, **arguments) as envs:
        assert envs.plan.backend != "kernel"
        envs.reset(seed=0)


class ModifiedCartPole(CartPoleEnv):
    """A user-defined class with a different rule."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, 7.0, terminated, truncated, info


def test_user_class_registered_under_a_gymnasium_id_is_used():
    original = gymnasium.registry["CartPole-v1"]
    try:
        gymnasium.registry.pop("CartPole-v1")
        gymnasium.register("CartPole-v1", ModifiedCartPole, max_episode_steps=500)
        with shoal.make("CartPole-v1", 2, backend="inline") as envs:
            envs.reset(seed=0)
            assert envs.step([0, 1])[1].tolist() == [7.0, 7.0]
        with shoal.make("CartPole-v1", 2) as envs:
            assert envs.plan.backend != "kernel"
    finally:
        gymnasium.registry["CartPole-v1"] = original


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"backend": "kernel", "wrappers": [gymnasium.wrappers.FlattenObservation]},
            "no kernel for 'CartPole-v1' with wrappers, which backend='kernel' needs",
        ),
        ({"backend": "kernel", "start": "fork"}, "start requires backend='process'"),
        ({"backend": "kernel", "workers": -1}, "workers must be"),
        ({"backend": "process", "thread_affinity_offset": 1}, "requires backend='kernel'"),
        ({"backend": "inline", "seeding": "counter"}, "requires backend='kernel'"),
        ({"thread_affinity_offset": "one"}, "number of a core"),
        ({"backend": "kernel", "caller_works": False}, "the caller works as well"),
    ],
)
def test_incompatible_options_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        shoal.make("CartPole-v1", 2, **arguments)


def test_backend_kernel_without_a_kernel_raises():
    with pytest.raises(ValueError, match=r"no kernel for 'phys2d/CartPole-v1'"):
        shoal.make("phys2d/CartPole-v1", 2, backend="kernel")


def test_invalid_actions_step_nothing():
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


def test_action_of_a_slot_that_is_reset_is_ignored():
    with shoal.make("CartPole-v1", 3) as envs:
        envs.reset(seed=0)
        envs.state["x"][1] = 5.0
        assert envs.step([0, 0, 0])[2].tolist() == [False, True, False]
        envs.step([1, -99, 1])
        with pytest.raises(InvalidActionError, match="slot 1"):
            envs.step([1, -99, 1])


def test_step_before_reset_raises():
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


def test_disabled_autoreset_rejects_finished_slots():
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


def test_save_and_restore_include_the_generators():
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
        # Restore into another vector, and into other slots.
        other.reset(seed=8)
        other.restore(saved[[4, 5]])
        envs.restore(saved)
        for _ in range(10):
            one, two = envs.step(np.full(6, 1)), other.step(np.full(2, 1))
            assert_identical(two[0], one[0][4:])
        with pytest.raises(ValueError, match="expected 1 saved slots"):
            envs.restore(saved, slots=[3])


def test_vectors_can_be_copied_and_pickled(tmp_path):
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


def test_attributes_of_slots():
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


def test_parameters_can_differ_between_slots():
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
def test_other_info_formats(form):
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


def test_batches_of_finished_slots_while_others_are_in_flight():
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


def test_receive_a_group_while_another_is_in_flight():
    with shoal.make("CartPole-v1", 8, workers=1) as envs, shoal.make("CartPole-v1", 8) as plain:
        envs.reset(seed=0)
        plain.reset(seed=0)
        even, odd = np.arange(0, 8, 2), np.arange(1, 8, 2)
        envs.send(np.ones(4, np.int64), slots=even)
        envs.send(np.zeros(4, np.int64), slots=odd)
        expected = plain.step([1, 0] * 4)[0]
        assert_identical(envs.recv(slots=odd[::-1]).observations, expected[odd[::-1]])
        assert_identical(envs.recv(slots=even).observations, expected[even])


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


def test_snapshot_of_another_kernel_raises():
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


def test_copies_keep_seeds_and_closed_state():
    from copy import deepcopy

    envs = shoal.make("CartPole-v1", 2)
    envs.reset(seed=[5, 6])
    assert deepcopy(envs).np_random_seed == (5, 6)
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        deepcopy(envs).reset()


def test_invalid_seed_changes_no_slot():
    with shoal.make("CartPole-v1", 2) as envs:
        envs.reset(seed=[5, 6])
        with pytest.raises(ValueError, match="must not be negative"):
            envs.pool.reset(seeds=[1, -1])
        assert envs.np_random_seed == (5, 6)


def test_recv_of_slots_not_in_flight_raises():
    with shoal.make("CartPole-v1", 4) as envs:
        envs.reset(seed=0)
        envs.send([1, 1], slots=[3, 1])
        with pytest.raises(gymnasium.error.NoAsyncCallError, match="slot 2 is not in flight"):
            envs.recv(slots=[3, 2])
        assert envs.recv(slots=[1, 3]).slots.tolist() == [1, 3]
