"""User-written kernels in C and C++, valid and invalid ones."""

import os
import subprocess
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import InvalidActionError, KernelDefinitionError, KernelError
from shoal.pools import KernelPool
from shoal.testing import PoolConformance, assert_identical
from tests.kernels.c_sources import COMPILER, compiled, source


class Counter(gymnasium.Env):
    """The same environment in Python."""

    observation_space = spaces.Dict(
        [("picture", spaces.Box(-np.inf, np.inf, (2, 3))), ("clock", spaces.Discrete(7))]
    )
    action_space = spaces.MultiDiscrete([3, 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.total = 0, (options or {}).get("start", 0.0)
        return self._observation(), self._info(self.np_random.random())

    def step(self, action):
        self.steps += 1
        self.total += 1.0 * float(action[0] - action[1])
        drawn = float(self.np_random.integers(1000))
        ended, cut = self.total > 8.0, self.total < -8.0
        return self._observation(), self.total, ended, cut, self._info(drawn)

    def _observation(self):
        picture = (self.total + np.arange(6)).astype(np.float32).reshape(2, 3)
        return {"picture": picture, "clock": self.steps % 7}

    def _info(self, drawn):
        return {"drawn": drawn, "flags": np.array([self.steps % 100, 1], np.int8)}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("counter"), source())


@pytest.fixture(scope="module")
def kernel(library):
    return shoal.kernels.load(library)


def test_loaded_kernel_has_the_described_spaces(kernel):
    assert kernel.name == "Counter"
    assert kernel.observation_space == Counter.observation_space
    assert kernel.action_space == Counter.action_space
    assert kernel.state_dtype.names == ("steps", "total")
    assert kernel.options == {"start": 0.0}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_library_equals_the_same_environment_in_python(kernel, mode):
    def counter():
        return gymnasium.wrappers.TimeLimit(Counter(), 25)

    native = shoal.make(kernel, 6, autoreset_mode=mode, statistics=True)
    python = shoal.make(counter, 6, backend="inline", autoreset_mode=mode, statistics=True)
    options = {"start": 2.5}
    assert_identical(native.reset(seed=4, options=options), python.reset(seed=4, options=options))
    for _ in range(120):
        actions = python.action_space.sample()
        got, expected = native.step(actions), python.step(actions)
        for infos in (got[4], expected[4]):
            infos.get("episode", {}).pop("t", None)
        assert_identical(got, expected)
        done = expected[2] | expected[3]
        if mode == "Disabled" and done.any():
            mask = {"reset_mask": done}
            assert_identical(native.reset(options=mask), python.reset(options=mask))


class TestLibrary(PoolConformance):
    """The pool contract with a kernel of several leaves."""

    @pytest.fixture(autouse=True)
    def load(self, kernel):
        type(self).kernel = kernel

    def make_pool(self, num_envs, **options):
        return KernelPool(self.kernel, num_envs, **options)


def test_parameters_and_options_are_set_by_name(kernel):
    with shoal.make(kernel, 2, gain=10, max_episode_steps=3) as envs:
        envs.reset(seed=0, options={"start": 1})
        with pytest.raises(InvalidActionError, match="slot 1: element 1 of action is 4"):
            envs.step([[0, 0], [0, 4]])
        assert envs.step([[1, 0], [0, 0]])[1].tolist() == [11.0, 1.0]
        assert envs.get_attr("gain") == (10.0, 10.0)
        envs.step([[0, 0], [0, 0]])
        assert envs.step([[0, 0], [0, 0]])[3].tolist() == [False, True]
        with pytest.raises(ValueError, match=r"no reset option 'begin'; available: start"):
            envs.reset(options={"begin": 1})
        with pytest.raises(ValueError, match="start must be a number, got 'x'"):
            envs.reset(options={"start": "x"})
    with pytest.raises(KernelDefinitionError, match=r"no parameter 'gian'; available: gain"):
        shoal.make(kernel, 2, gian=1)
    with pytest.raises(ValueError, match="does not support rendering"):
        shoal.make(kernel, 2, render_mode="rgb_array")
    with pytest.raises(ValueError, match="Counter is a kernel"):
        shoal.make(kernel, 2, backend="process")


def test_kernel_is_recreated_in_another_process(kernel):
    envs = shoal.make(kernel, 3, gain=2)
    envs.reset(seed=1)
    script = (
        "import sys, cloudpickle; envs = cloudpickle.load(sys.stdin.buffer); "
        "print(envs.step([[1, 0]] * 3)[1].tolist())"
    )
    there = subprocess.run(
        [sys.executable, "-c", script],
        input=cloudpickle.dumps(envs),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert there.stdout.decode().strip() == str(envs.step([[1, 0]] * 3)[1].tolist())


def test_kernel_in_cpp(tmp_path):
    text = source(head="#include <stdexcept>", export='extern "C"').replace(
        "(shoal_leaf){", "shoal_leaf{"
    )
    with shoal.make(shoal.kernels.load(compiled(tmp_path, text, suffix=".cpp")), 3) as envs:
        envs.reset(seed=0)
        envs.step([[0, 0]] * 3)


def step_until_failure(kernel, count=3000, slot=None, **options):
    envs = shoal.make(kernel, count, workers=2, **options)
    envs.reset(seed=0)
    actions = np.zeros((count, 2), np.int64)
    if slot is not None:
        actions[slot] = (2, 3)
    with pytest.raises(KernelError) as caught:
        envs.step(actions)
    return envs, str(caught.value)


def test_error_names_its_slot_and_other_slots_continue(tmp_path):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "the wheel came off");'
    kernel = shoal.kernels.load(compiled(tmp_path, source(step)))
    envs, message = step_until_failure(kernel, slot=[1717, 2000])
    assert "slot 1717 of 3000, in its step: the wheel came off (and 1 more slot)" in message
    steps = envs.state["steps"]
    assert steps[1717] == steps[2000] == 0
    assert (np.delete(steps, [1717, 2000]) == 1).all()
    # Failed slots are reset by the next step.
    envs.step(np.zeros((3000, 2), np.int64))
    envs.step(np.zeros((3000, 2), np.int64))
    assert envs.state["steps"][1717] == 1
    assert envs.state["steps"][0] == 3
    actions = np.zeros((3000, 2), np.int64)
    actions[5] = (0, 3)
    envs.send(actions)
    with pytest.raises(KernelError, match="slot 5 "):
        envs.recv()
    assert envs.pool.in_flight == 0
    envs.step(np.zeros((3000, 2), np.int64))
    envs.close()


def test_nan_raises_kernel_error(tmp_path):
    step = "if (actions[2 * k + 1] == 3) s->total = 0.0 / (double)s->steps;"
    library = compiled(tmp_path, source(step))
    envs, message = step_until_failure(shoal.kernels.load(library), slot=77)
    assert "slot 77 of 3000, in its step: the kernel wrote NaN into" in message
    envs.close()
    with shoal.make(shoal.kernels.load(library, check_nan=False), 3) as envs:
        envs.reset(seed=0)
        assert np.isnan(envs.step([[2, 3]] * 3)[1]).all()


def test_invalid_return_value_raises_kernel_error(tmp_path):
    kernel = shoal.kernels.load(compiled(tmp_path, source("if (s->steps >= 0) return 123456;")))
    _, message = step_until_failure(kernel)
    assert "the kernel returned 123456, expected SHOAL_OK" in message


def test_cpp_exception_raises_kernel_error(tmp_path):
    text = source(
        'if (actions[2 * k + 1] == 3) throw std::runtime_error("no such gear");',
        head="#include <stdexcept>",
        export='extern "C"',
    ).replace("(shoal_leaf){", "shoal_leaf{")
    kernel = shoal.kernels.load(compiled(tmp_path, text, suffix=".cpp"))
    envs, message = step_until_failure(kernel, count=1, slot=0)
    assert "slot 0 of 1, in its step: the kernel threw: no such gear" in message
    envs.step([[0, 0]])


@pytest.mark.parametrize("workers", [0, 2])
def test_exception_in_draw_reaches_the_caller(tmp_path, workers):
    text = source(
        head="""#include <stdexcept>
static void draw(const shoal_slots* slots, shoal_canvas*) {
  if (slots->first % 2 == 1) throw std::runtime_error("no ink");
}""",
        change="kernel.draw = draw; kernel.width = 8; kernel.height = 8;",
        export='extern "C"',
    ).replace("(shoal_leaf){", "shoal_leaf{")
    kernel = shoal.kernels.load(compiled(tmp_path, text, suffix=".cpp"))
    with shoal.make(kernel, 64, workers=workers, render_mode="rgb_array") as envs:
        envs.reset(seed=0)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="no ink"):
                envs.render()
            envs.step(np.zeros((64, 2), np.int64))


@pytest.mark.parametrize(
    ("change", "message_pattern"),
    [
        ("kernel.version = 99;", "version 99 .* expected 2"),
        ("kernel.step = 0;", "reset and step must not be NULL"),
        ("kernel.name = 0;", "has no name"),
        ("kernel.observation_count = 0;", "must have observations"),
        ("kernel.observation_count = 99;", "99 observations, expected from 0 to 32"),
        ("observations[0].dimensions = 7;", "7 dimensions"),
        ("observations[0].shape[1] = -2;", "a dimension of size -2"),
        ("observations[0].name = 0;", "either all observations must have names or none"),
        ('observations[1].name = "picture";', "have duplicate names"),
        ("observations[1].dtype = SHOAL_FLOAT32;", "SHOAL_DISCRETE must have dtype int64"),
        ("infos[1].name = 0;", "info number 1 has no name"),
        ("fields[1].offset = 12;", "outside the state of 16 bytes"),
        ("kernel.max_episode_steps = -1;", "max_episode_steps is negative"),
        ("fields[1].name = fields[0].name;", "its fields have the duplicate name steps"),
        ('infos[0].name = "final_obs";', "the info name 'final_obs' is reserved"),
        ("actions[0].low = 1.0;", "SHOAL_MULTI_DISCRETE must range from 0"),
        ("observations[1].high = 2.5;", "must range from 0 to a non-negative integer"),
        ("kernel.infos = 0;", "it has 2 infos, but the pointer to them is NULL"),
        ("return 0;", "returned NULL"),
    ],
)
def test_invalid_kernel_raises(tmp_path, change, message_pattern):
    library = compiled(tmp_path, source(change=change))
    with pytest.raises(KernelDefinitionError, match=message_pattern):
        shoal.kernels.load(library)


def test_invalid_library_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        shoal.kernels.load(tmp_path / "nowhere.so")
    with pytest.raises(KernelDefinitionError, match="does not export shoal_kernel_entry"):
        shoal.kernels.load(compiled(tmp_path, "int nothing(void) { return 0; }"))


@pytest.mark.slow
def test_sanitizer_detects_write_beyond_the_last_row(tmp_path):
    step = "if (slots->first + k == 2) s[1].total = 1.0;"  # beyond the last slot
    library = compiled(tmp_path, source(step), "-fsanitize=address", "-g")
    script = f"""
import shoal
envs = shoal.make(shoal.kernels.load({str(library)!r}), 3)
envs.reset(seed=0)
for _ in range(3):
    envs.step([[0, 0]] * 3)
print("done")
"""
    runtime = subprocess.run(
        [COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode != 0
    assert "heap-buffer-overflow" in ended.stderr
    assert "in step" in ended.stderr


def test_rebuilt_library_is_reloaded(tmp_path):
    first = shoal.kernels.load(compiled(tmp_path, source()))
    os.unlink(tmp_path / "kernel.so")
    again = shoal.kernels.load(compiled(tmp_path, source(change='kernel.name = "Other";')))
    assert (first.name, again.name) == ("Counter", "Other")
    shoal.make(first, 2).reset(seed=0)


def test_kernel_without_state(tmp_path):
    change = "kernel.state_bytes = 0; kernel.field_count = 0;"
    kept = "state* states = (state*)slots->state;"
    text = source(change=change).replace(kept, "static state states[99];")
    with shoal.make(shoal.kernels.load(compiled(tmp_path, text)), 2) as envs:
        envs.reset(seed=0)
        envs.step([[0, 0], [0, 0]])
        assert envs.state.shape == (2,)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_failed_slot_is_reset_before_its_next_step(tmp_path, mode):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "no");'
    kernel = shoal.kernels.load(compiled(tmp_path, source(step)))
    with shoal.make(kernel, 3, autoreset_mode=mode) as envs:
        envs.reset(seed=0)
        idle = [[0, 0]] * 3
        envs.step(idle)
        with pytest.raises(KernelError, match="slot 1"):
            envs.step([[0, 0], [0, 3], [0, 0]])
        if mode == "Disabled":
            with pytest.raises(gymnasium.error.ResetNeeded, match="slot 1"):
                envs.step(idle)
            envs.reset(options={"reset_mask": np.array([False, True, False])})
            assert envs.state["steps"].tolist() == [2, 0, 2]
        else:
            envs.step(idle)
            assert envs.state["steps"].tolist() == [3, 0, 3]


def test_failure_is_received_with_its_slot_only(tmp_path):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "no");'
    kernel = shoal.kernels.load(compiled(tmp_path, source(step)))
    count = 4000
    with shoal.make(kernel, count, workers=2) as envs:
        envs.reset(seed=0)
        for _ in range(3):
            envs.step(np.zeros((count, 2), np.int64))
        actions = np.zeros((count, 2), np.int64)
        actions[17] = (0, 3)
        envs.send(actions)
        failed = 0
        while envs.pool.in_flight:
            before = envs.pool.in_flight
            try:
                batch = envs.recv(min_slots=1)
                assert 17 not in batch.slots
            except KernelError as error:
                failed += 1
                assert "slot 17 " in str(error)  # noqa: PT017
            assert envs.pool.in_flight < before
        assert failed == 1
        envs.step(np.zeros((count, 2), np.int64))


def test_only_seeded_resets_clear_the_state(tmp_path):
    remember = """
    static int64_t remember(const shoal_slots* slots) {
      double* numbers = (double*)slots->state;
      for (int64_t k = 0; k < slots->count; ++k) numbers[2 * k + 1] += 1.0;
      return SHOAL_OK;
    }
    """
    code = source(head=remember, change="kernel.reset = remember;")
    with shoal.make(shoal.kernels.load(compiled(tmp_path, code)), 3) as envs:
        for seed, expected in ((7, [1, 1, 1]), (None, [2, 2, 2]), ([5, None, 5], [1, 3, 1])):
            envs.reset(seed=seed)
            assert envs.state["total"].tolist() == expected


def test_statistics_do_not_overwrite_an_info(tmp_path):
    kernel = shoal.kernels.load(compiled(tmp_path, source(change='infos[0].name = "episode";')))
    with shoal.make(kernel, 2, statistics=True, max_episode_steps=1) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="would overwrite the info 'episode'"):
            envs.step([[0, 0]] * 2)
