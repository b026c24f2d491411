"""AsyncVectorEnv: its state machine, timeouts, interrupts and errors."""

import multiprocessing
import re
import signal
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

from shoal.errors import RemoteError, VectorFailedError
from shoal.testing import assert_identical
from shoal.vector import AsyncState, AsyncVectorEnv, AutoresetMode
from tests.faulty import FaultyEnv, fault
from tests.random_environments import RandomEnv, WordSpace
from tests.vector.slow_environments import Slow, SlowToCall, custom_worker

NOTHING = fault("nothing")


VARIANTS = [
    {},
    {"shared_memory": False},
    {"copy": False},
    {"context": "fork"},
    {"context": "spawn"},
    {"context": "forkserver"},
    {"max_concurrency": 2},
    {"worker": custom_worker},
    {"worker": custom_worker, "shared_memory": False},
    {"worker": custom_worker, "copy": False},
]


def option_id(options):
    return " ".join(
        f"{name}={getattr(value, '__name__', value)}" for name, value in options.items()
    )


@pytest.mark.parametrize("options", VARIANTS, ids=option_id)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_equals_gymnasium(options, mode):
    factories = [partial(gymnasium.make, "CartPole-v1")] * 3
    envs = AsyncVectorEnv(factories, autoreset_mode=mode, **options)
    reference = gymnasium.vector.SyncVectorEnv(factories, autoreset_mode=mode)
    assert envs.observation_space == reference.observation_space
    assert envs.metadata == reference.metadata
    assert_identical(envs.reset(seed=5), reference.reset(seed=5))
    reference.action_space.seed(3)
    for _ in range(60):
        actions = reference.action_space.sample()
        *batch, infos = envs.step(actions)
        *expected, expected_infos = reference.step(actions)
        assert_identical(batch, expected)
        # The order of the keys differs between Gymnasium's SyncVectorEnv and AsyncVectorEnv.
        assert_identical(dict(sorted(infos.items())), dict(sorted(expected_infos.items())))
    assert envs.get_attr("gravity") == (9.8, 9.8, 9.8)
    envs.set_attr("gravity", [1.0, 2.0, 3.0])
    assert envs.call("gravity") == (1.0, 2.0, 3.0)
    assert envs.np_random_seed == (5, 6, 7)
    envs.close()
    reference.close()


def faulty_envs():
    envs = AsyncVectorEnv([partial(FaultyEnv, label) for label in range(2)], context="fork")
    envs.reset(seed=1)
    return envs


class TestStateMachine:
    @pytest.mark.parametrize("method", ["reset", "step", "call"])
    def test_wait_without_a_pending_call_is_refused(self, method):
        envs = faulty_envs()
        message = f"Calling `{method}_wait` without any prior call to `{method}_async`."
        with pytest.raises(NoAsyncCallError, match=re.escape(message)) as info:
            getattr(envs, f"{method}_wait")()
        assert info.value.name == method
        envs.close()

    def test_second_pending_call_is_refused(self):
        envs = faulty_envs()
        starts = {
            "reset": envs.reset_async,
            "step": partial(envs.step_async, [NOTHING] * 2),
            "call": partial(envs.call_async, "label"),
        }
        for pending, start in starts.items():
            start()
            for other in starts.values():
                with pytest.raises(AlreadyPendingCallError, match=f"`{pending}`"):
                    other()
            with pytest.raises(AlreadyPendingCallError):
                envs.set_attr("label", 3)
            getattr(envs, f"{pending}_wait")()
        envs.close()

    def test_close_with_a_pending_call_warns(self):
        envs = faulty_envs()
        envs.step_async([NOTHING] * 2)
        with pytest.warns(UserWarning, match="pending call to `step` to complete"):
            envs.close()
        with pytest.raises(ClosedEnvironmentError):
            envs.reset()

    def test_call_refuses_step(self):
        envs = faulty_envs()
        with pytest.raises(ValueError, match="use `step` directly"):
            envs.call("step", 1)
        envs.close()


class TestTimeouts:
    def test_late_step_results_are_discarded(self):
        envs = faulty_envs()
        envs.step_async([fault("wait"), NOTHING])
        with pytest.raises(multiprocessing.TimeoutError, match="`step_wait` has timed out"):
            envs.step_wait(timeout=0.02)
        with pytest.raises(NoAsyncCallError):
            envs.step_wait()
        envs.step_async([NOTHING, NOTHING])
        assert envs.step_wait()[0][:, 1].tolist() == [2, 2]
        envs.close()

    def test_reset_after_a_step_timeout(self):
        envs = faulty_envs()
        envs.step_async([fault("wait"), NOTHING])
        with pytest.raises(TimeoutError):
            envs.step_wait(timeout=0.0)
        observations, _ = envs.reset(seed=1)
        assert observations[:, 1].tolist() == [0, 0]
        envs.close()

    def test_call_timeout(self):
        envs = faulty_envs()
        envs.call_async("step_slowly")
        with pytest.raises(AttributeError):
            envs.call_wait()
        envs.close()
        envs = AsyncVectorEnv([SlowToCall] * 2, context="fork")
        envs.call_async("slow")
        with pytest.raises(multiprocessing.TimeoutError, match="`call_wait` has timed out"):
            envs.call_wait(timeout=0.02)
        assert envs.call("fast") == ("fast", "fast")
        envs.close()

    def test_close_timeout(self):
        envs = faulty_envs()
        envs.step_async([fault("sleep"), NOTHING])
        start = time.monotonic()
        with pytest.warns(UserWarning, match="pending call"):
            envs.close(timeout=0.2)
        assert time.monotonic() - start < 2.0


class TestInterrupts:
    @pytest.mark.parametrize("options", [{}, {"worker": custom_worker}], ids=["own", "custom"])
    @pytest.mark.parametrize("method", ["step", "reset", "call"])
    def test_interrupted_wait_can_be_repeated(self, method, options):
        envs = AsyncVectorEnv([Slow] * 2, context="fork", **options)
        envs.reset(seed=1)
        start = {
            "step": partial(envs.step_async, envs.action_space.sample()),
            "reset": envs.reset_async,
            "call": partial(envs.call_async, "slow"),
        }[method]
        for _ in range(2):
            start()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                getattr(envs, f"{method}_wait")()
            result = getattr(envs, f"{method}_wait")()
            assert len(result) in (2, 5)
            if method == "reset":
                assert len(result[1]["label"]) == 2
        envs.close()

    def test_interrupts_at_any_time(self):
        envs = AsyncVectorEnv([partial(FaultyEnv, label) for label in range(4)], context="fork")
        envs.reset(seed=1)
        interrupted = 0
        for delay in range(60):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 * (delay + 1))
                    envs.step([NOTHING] * 4)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            if envs._state is AsyncState.WAITING_STEP:
                assert len(set(envs.step_wait()[0][:, 1])) == 1
        assert interrupted > 0
        assert len(set(envs.step([NOTHING] * 4)[0][:, 1])) == 1
        envs.close()

    @pytest.fixture(autouse=True)
    def alarms_interrupt(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        yield
        signal.signal(signal.SIGALRM, before)


class TestErrors:
    def test_percent_signs_in_messages(self):
        envs = AsyncVectorEnv([partial(FaultyEnv, "100%d")] * 2)
        envs.reset()
        with pytest.warns(UserWarning, match="100%d"), pytest.raises(ArithmeticError):
            envs.step([fault("raise"), NOTHING])
        envs.close()

    def test_errors_of_late_results_are_raised(self):
        envs = faulty_envs()
        envs.call("set_wrapper_attr", "fails_in", "reset")
        envs.reset_async()
        with pytest.raises(TimeoutError):
            envs.reset_wait(timeout=0)
        with pytest.raises(VectorFailedError, match="fails in reset"):
            envs.step([NOTHING] * 2)
        envs.close()

    @pytest.mark.parametrize(
        ("name", "kind", "message"),
        [
            ("raise", ArithmeticError, "1 fails as asked"),
            ("odd error", ValueError, "code 3"),
            ("unpicklable error", RemoteError, "holds a lock"),
        ],
    )
    def test_errors_are_raised_and_fail_later_calls(self, name, kind, message):
        envs = faulty_envs()
        with (
            pytest.warns(UserWarning, match="from Worker-1 - Shutting it down"),
            pytest.raises(kind, match=message),
        ):
            envs.step([NOTHING, fault(name)])
        for use in (envs.reset, partial(envs.step, [NOTHING] * 2), partial(envs.call, "label")):
            with pytest.raises(VectorFailedError, match=message):
                use()
        envs.close()

    def test_error_in_a_constructor(self):
        with pytest.raises(ArithmeticError, match="1 fails in init") as info:
            AsyncVectorEnv([FaultyEnv, partial(FaultyEnv, 1, "init")])
        assert any("slot 1 of 2" in note for note in info.value.__notes__)

    def test_close_never_raises(self, caplog):
        envs = AsyncVectorEnv([partial(FaultyEnv, 0, "close"), FaultyEnv])
        envs.close()
        assert "0 fails in close" in caplog.text

    def test_error_in_a_custom_worker(self):
        envs = AsyncVectorEnv([FaultyEnv] * 2, worker=custom_worker)
        envs.reset()
        with pytest.warns(UserWarning, match="Worker-0"), pytest.raises(ArithmeticError):
            envs.step([fault("raise"), NOTHING])
        envs.close()

    def test_spaces_of_custom_workers_are_checked(self):
        with pytest.raises(RuntimeError, match="observation spaces"):
            AsyncVectorEnv([FaultyEnv, SlowToCall], worker=custom_worker)

    def test_custom_workers_with_unread_results_can_be_closed(self):
        space = spaces.Box(0, 255, (512, 512, 3), np.uint8)
        factories = [partial(RandomEnv, space, spaces.Discrete(2))] * 2
        envs = AsyncVectorEnv(factories, worker=custom_worker, shared_memory=False)
        envs.reset()
        envs.step_async([0, 1])
        with pytest.warns(UserWarning, match="pending call"):
            envs.close()

    def test_custom_worker_with_wrong_signature_is_refused(self):
        with pytest.raises(ValueError, match=r"must accept \d arguments"):
            AsyncVectorEnv([FaultyEnv], worker=lambda index, env_fn: None)

    @pytest.mark.parametrize("limit", [0, -3, 2.0, "2"])
    def test_invalid_max_concurrency(self, limit):
        with pytest.raises(ValueError, match="`max_concurrency` must be"):
            AsyncVectorEnv([FaultyEnv], max_concurrency=limit)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(20),
        spaces.OneOf((spaces.Discrete(3), spaces.Box(-1, 1, (2,)))),
        spaces.Dict(word=spaces.Text(5), image=spaces.Box(0, 255, (4, 4), np.uint8)),
        spaces.Sequence(spaces.Discrete(4)),
        spaces.Box(-1, 1, (3,), np.float16),
    ],
    ids=str,
)
def test_observations_without_full_support_in_gymnasium(space):
    factories = [partial(RandomEnv, space, spaces.Discrete(2))] * 3
    envs = AsyncVectorEnv(factories, context="fork")
    reference = gymnasium.vector.SyncVectorEnv(factories)
    assert_identical(envs.reset(seed=2), reference.reset(seed=2))
    for _ in range(15):
        assert_identical(envs.step([0, 1, 0]), reference.step([0, 1, 0]))
    envs.close()
    reference.close()


def test_custom_spaces_need_shared_memory_false():
    factories = [partial(RandomEnv, WordSpace(), spaces.Discrete(2))] * 2
    with pytest.raises(ValueError, match="shared_memory=False"):
        AsyncVectorEnv(factories)
    envs = AsyncVectorEnv(factories, shared_memory=False)
    assert all(word.startswith("word-") for word in envs.reset(seed=1)[0])
    envs.close()


def test_max_concurrency_of_one_is_sequential():
    envs = AsyncVectorEnv([FaultyEnv] * 3, max_concurrency=1)
    envs.reset()
    start = time.monotonic()
    envs.step([fault("wait")] * 3)
    assert time.monotonic() - start > 0.59
    envs.close()


def test_masked_reset():
    envs = AsyncVectorEnv([partial(FaultyEnv, label) for label in range(3)])
    envs.reset(seed=1)
    envs.step([NOTHING] * 3)
    options = {"reset_mask": np.array([True, False, True])}
    observations, infos = envs.reset(seed=7, options=options)
    assert observations[:, 1].tolist() == [0, 1, 0]
    assert infos == {}
    assert "reset_mask" in options
    envs.close()
