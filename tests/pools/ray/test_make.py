"""``shoal.make(..., backend="ray")`` behaves like the other backends."""

import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import ClusterError
from shoal.testing import ProbeEnv
from shoal.vector import AutoresetMode
from tests.pools.ray.pools import CPUS, actors, wait_until
from tests.random_environments import RandomEnv
from tests.rollouts import assert_rollouts_are_equal
from tests.strategies import SPACES

pytestmark = pytest.mark.usefixtures("ray_here")

on_ray = partial(shoal.make, backend="ray", workers=2, cpus_per_worker=CPUS)


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.SAME_STEP,
        pytest.param(AutoresetMode.NEXT_STEP, marks=pytest.mark.slow),
        pytest.param(AutoresetMode.DISABLED, marks=pytest.mark.slow),
    ],
)
def test_kernel_trajectories(mode):
    options = {"num_envs": 5, "autoreset_mode": mode, "statistics": True}
    envs = on_ray("CartPole-v1", **options)
    assert "KernelPool" in str(envs.plan)
    reference = shoal.make("CartPole-v1", **options)

    def without_times(result):
        infos = result[-1]
        if "episode" in infos:
            infos["episode"].pop("t")
        return result

    assert_rollouts_are_equal(envs, reference, 150, seed=7, seen=without_times)
    envs.close()
    reference.close()


def test_kernel_infos():
    envs = on_ray("shoal/Hockey-v0", num_envs=6, autoreset_mode="SameStep")
    reference = shoal.make("shoal/Hockey-v0", num_envs=6, autoreset_mode="SameStep")
    assert_rollouts_are_equal(envs, reference, 300, seed=3)
    envs.close()
    reference.close()


def test_atari_games():
    pytest.importorskip("ale_py")
    envs = on_ray("ALE/Pong-v5", num_envs=3)
    reference = shoal.make("ALE/Pong-v5", num_envs=3, backend="inline")
    assert_rollouts_are_equal(envs, reference, 15, seed=5, masks=0)
    assert type(envs) is type(reference)
    saved = pickle.loads(pickle.dumps(envs.save([0])))
    envs.restore(saved, [0])
    envs.close()
    reference.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(space=SPACES, actions=SPACES, mode=st.sampled_from(AutoresetMode))
def test_any_spaces_give_the_trajectories_of_the_inline_pool(space, actions, mode):
    factories = [partial(RandomEnv, space, actions) for _ in range(3)]
    envs = on_ray(factories, autoreset_mode=mode, worker_backend="inline")
    reference = shoal.make(factories, autoreset_mode=mode, backend="inline")
    assert_rollouts_are_equal(envs, reference, 12, seed=1)
    envs.close()
    reference.close()


@pytest.mark.parametrize(
    "worker_backend",
    ["process", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("inline", "thread"))],
)
def test_actors_can_have_any_pool(worker_backend):
    factories = [partial(ProbeEnv, label) for label in range(4)]
    envs = on_ray(factories, worker_backend=worker_backend, copy=False)
    reference = shoal.make(factories, backend="inline")
    assert_rollouts_are_equal(envs, reference, 25, seed=2)
    assert worker_backend.capitalize() in str(envs.plan)
    assert str(envs.plan).startswith("4 slots, 2 actors of Ray: requested; they host ")
    envs.close()
    reference.close()


def test_observation_spaces_may_differ():
    class Wide(gymnasium.Env):
        action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, width):
            self.observation_space = gymnasium.spaces.Box(-width, width, (2,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(2, np.float32), {}

    factories = [partial(Wide, width) for width in (1, 2, 3)]
    envs = on_ray(factories, observation_mode="different")
    reference = gymnasium.vector.SyncVectorEnv(factories, observation_mode="different")
    assert envs.observation_space == reference.observation_space
    envs.close()


def test_batches_of_one_actor_are_copied_only_on_request():
    class Large(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 255, (500_000,), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.full(500_000, 7, np.uint8), {}

        def step(self, action):
            return np.full(500_000, action, np.uint8), 0.0, False, False, {}

    for copy in (True, False):
        envs = on_ray([Large] * 2, copy=copy)
        envs.reset()
        envs.send([0, 1])
        for slot in (0, 1):
            batch = envs.recv(slots=[slot])
            assert (batch.observations == slot).all()
            assert batch.observations.flags.writeable is copy
        together = envs.step([1, 1])[0]
        assert together.flags.writeable
        envs.close()


def test_double_buffering_returns_each_group_separately():
    envs = on_ray([partial(ProbeEnv, label) for label in range(6)], worker_backend="inline")
    envs.reset(seed=1)
    groups = [0, 2, 4], [1, 3, 5]
    envs.action_space.seed(0)

    def sample(slots):
        return {key: value[slots] for key, value in envs.action_space.sample().items()}

    for slots in groups:
        envs.send(sample(slots), slots)
    for _ in range(20):
        for slots in groups:
            batch = envs.recv(slots=slots)
            assert batch.slots.tolist() == slots
            envs.send(sample(slots), slots)
    envs.close(terminate=True)


def test_actor_has_at_most_two_pending_requests():
    envs = on_ray([ProbeEnv] * 8, worker_backend="inline")
    envs.reset(seed=1)
    action = {key: value[:1] for key, value in envs.action_space.sample().items()}
    for slot in range(8):
        envs.send(action, [slot])
    assert all(len(client._state.calls) <= 2 for client in envs.pool._clients)
    assert sorted(envs.recv().slots) == list(range(8))
    envs.close()


def test_actors_have_the_environments_registered_by_the_caller():
    gymnasium.register("OnlyHere-v0", entry_point=lambda: ProbeEnv(5))
    envs = on_ray("OnlyHere-v0", num_envs=2)
    assert envs.get_attr("label") == (5, 5)
    assert envs.spec.id == "OnlyHere-v0"
    envs.close()
    del gymnasium.registry["OnlyHere-v0"]


@pytest.mark.slow
def test_runtime_environments_reach_the_actors():
    envs = on_ray([ProbeEnv] * 2, workers=1, runtime_env={"env_vars": {"SHOAL_TEST_OF_RAY": "set"}})
    assert envs.pool.call(lambda env: os.environ["SHOAL_TEST_OF_RAY"], slots=[0]) == ["set"]
    envs.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"caller_works": True}, "caller_works cannot be used with backend='ray'"),
        ({"pin": True}, "pin cannot be used with backend='ray'"),
        ({"cpus_per_worker": 1.5}, "cpus_per_worker must be a whole number"),
        ({"cpus_per_worker": 0}, "cpus_per_worker must be a whole number"),
        ({"placement": "near"}, "placement must be one of"),
        ({"worker_backend": "ray"}, "worker_backend must be one of"),
        ({"start_timeout": 0}, "start_timeout must be a positive number"),
        ({"workers": 0}, "workers must be a positive integer"),
        ({"worker_backend": "inline", "step_timeout": 1.0}, "step_timeout requires"),
        ({"backend": "process", "placement": "pack"}, "and placement require backend='ray'"),
        ({"backend": "auto", "address": "auto"}, "and address require backend='ray'"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        on_ray("CartPole-v1", **{"num_envs": 2, **options})


def test_empty_vector_is_rejected():
    with pytest.raises(ValueError, match="at least one environment"):
        on_ray([])


def test_atari_rewards_are_clipped_without_copies():
    pytest.importorskip("ale_py")
    with on_ray("ALE/Pong-v5", num_envs=1, workers=1, copy=False, reward_clipping=True) as envs:
        envs.reset(seed=0)
        assert envs.step([0])[1].tolist() == [0.0]


def test_cluster_with_too_few_cpus_is_an_error():
    with pytest.raises(ClusterError, match="cpus_per_worker"):
        on_ray("CartPole-v1", 4, cpus_per_worker=64, start_timeout=0.2)


def test_no_resources_leak_however_a_vector_is_closed(ray_here):
    def make_vector():
        envs = on_ray([ProbeEnv] * 2)
        envs.reset(seed=0)
        return envs

    make_vector().close()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    make_vector().close()
    make_vector().close(terminate=True)
    envs = make_vector()
    with pytest.warns(ResourceWarning, match="was not closed"):
        envs.__del__()
    del envs
    gc.collect()
    wait_until(lambda: not actors(ray_here), 10.0)
    wait_until(lambda: ray_here.available_resources().get("CPU") == 2.0, 10.0)
    after = len(os.listdir("/proc/self/fd")), threading.active_count()
    # Ray keeps some connections to workers that it may reuse.
    assert after[0] - before[0] < 30
    assert after[1] - before[1] < 5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_resources_leak_over_many_vectors(ray_here):
    def cycle():
        envs = on_ray([ProbeEnv] * 2)
        envs.reset(seed=0)
        envs.close()

    for _ in range(10):
        cycle()
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(150):
        cycle()
    wait_until(lambda: not actors(ray_here), 20.0)
    assert len(os.listdir("/proc/self/fd")) <= before[0] + 30
    assert threading.active_count() <= before[1] + 5


def run_script(text):
    """Run a script in another process, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cluster_started_for_a_vector_is_shut_down_with_the_last_one():
    output = run_script("""
        import ray, shoal
        first = shoal.make("CartPole-v1", 2, backend="ray", cpus_per_worker=0.5)
        second = shoal.make("CartPole-v1", 2, backend="ray", workers=1, cpus_per_worker=0.5)
        first.close()
        print("running:", ray.is_initialized(), second.reset(seed=1)[0].shape)

        def number(env):
            return Number(7)

        class Number(int):
            pass

        print("class is sent:", [type(result) is Number for result in second.pool.call(number)])
        second.close()
        print("after the last one:", ray.is_initialized())
    """)
    assert output.splitlines()[-3:] == [
        "running: True (2, 4)",
        "class is sent: [True, True]",
        "after the last one: False",
    ]


@pytest.mark.slow
def test_cluster_started_by_the_user_is_not_shut_down():
    output = run_script("""
        import ray, shoal
        first = shoal.make("CartPole-v1", 2, backend="ray", workers=1, cpus_per_worker=0.5)
        ray.shutdown()
        try:
            first.reset()
        except shoal.errors.VectorFailedError as error:
            print(error)
        ray.init(num_cpus=2, include_dashboard=False)
        second = shoal.make("CartPole-v1", 2, backend="ray", workers=1, cpus_per_worker=0.5)
        first.close()
        print("second:", second.reset(seed=1)[0].shape)
        second.close()
        print("the user's:", ray.is_initialized())
    """)
    assert output.splitlines()[-3:] == [
        "reset: Ray was shut down, which ended the environments",
        "second: (2, 4)",
        "the user's: True",
    ]


@pytest.mark.slow
def test_local_cluster_with_too_few_cpus_is_rejected_at_once():
    output = run_script("""
        import ray, shoal
        try:
            shoal.make("CartPole-v1", 64, backend="ray", workers=64)
        except shoal.errors.ClusterError as error:
            print(str(error)[:40], ray.is_initialized())
    """)
    assert output.splitlines()[-1] == "not enough CPUs for 64 actors with 1 CPU False"


def test_missing_ray_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(shoal.errors.MissingExtraError, match=r'pip install "shoal\[ray\]"'):
        on_ray("CartPole-v1", 2)
