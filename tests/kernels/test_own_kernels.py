"""Kernels of users: in C, in C++, and in numba; good ones and bad ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.cli.new_kernel import write_kernel
from shoal.errors import InvalidActionError, KernelDefinitionError, KernelError
from shoal.kernels import random_below, random_double, random_uniform
from shoal.pools import KernelPool
from shoal.testing import PoolConformance, assert_identical

COMPILER = os.environ.get("CC", "cc")


def compiled(folder, source, *flags, suffix=".c"):
    """A shared library made of a source."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"kernel{suffix}"
    file.write_text(source)
    library = folder / "kernel.so"
    standard = "-std=c11" if suffix == ".c" else "-std=c++17"
    compiler = COMPILER if suffix == ".c" else os.environ.get("CXX", "c++")
    command = [compiler, standard, "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    includes = f"-I{shoal.kernel.include_dir()}"
    subprocess.run([*command, *flags, includes, str(file), "-o", str(library), "-lm"], check=True)
    return library


# A counter that does what its action says, with everything a kernel can have.
PLAIN = r"""
#include <shoal_kernel.h>
#include <stddef.h>
%(head)s
typedef struct { int64_t steps; double total; } state;

static void tell(const shoal_slots* slots, int64_t k, const state* s, double drawn) {
  float* picture = (float*)slots->observations[0] + 6 * k;
  for (int i = 0; i < 6; ++i) picture[i] = (float)(s->total + i);
  ((int64_t*)slots->observations[1])[k] = s->steps %% 7;
  ((double*)slots->infos[0])[k] = drawn;
  ((int8_t*)slots->infos[1])[2 * k] = (int8_t)(s->steps %% 100);
  ((int8_t*)slots->infos[1])[2 * k + 1] = 1;
}
static int64_t reset(const shoal_slots* slots) {
  state* states = (state*)slots->state;
  for (int64_t k = 0; k < slots->count; ++k) {
    states[k].steps = 0;
    states[k].total = slots->options[0];
    tell(slots, k, &states[k], shoal_random_double(&slots->random[k]));
  }
  return SHOAL_OK;
}
static int64_t step(const shoal_slots* slots) {
  state* states = (state*)slots->state;
  const int64_t* actions = (const int64_t*)slots->actions[0];
  for (int64_t k = 0; k < slots->count; ++k) {
    state* s = &states[k];
    (void)s;
    %(step)s
    s->steps += 1;
    s->total += slots->parameters[0] * (double)(actions[2 * k] - actions[2 * k + 1]);
    slots->rewards[k] = s->total;
    slots->terminated[k] = s->total > 8.0 ? 3 : 0;
    slots->truncated[k] = s->total < -8.0 ? 9 : 0;
    tell(slots, k, s, (double)shoal_random_below(&slots->random[k], 1000));
  }
  return SHOAL_OK;
}
static const double most[] = {2.0, 3.0};
static shoal_leaf observations[2], actions[1], infos[2], fields[2];
static const shoal_number parameters[] = {{"gain", 1.0}};
static const shoal_number options[] = {{"start", 0.0}};
static shoal_kernel kernel;

%(export)s const shoal_kernel* shoal_kernel_entry(void) {
  observations[0] = (shoal_leaf){"picture", SHOAL_FLOAT32, 2, {2, 3}, SHOAL_BOX, 0, 0, 0, 0, 0};
  observations[1] = (shoal_leaf){"clock", SHOAL_INT64, 0, {0}, SHOAL_DISCRETE, 0, 6, 0, 0, 0};
  actions[0] = (shoal_leaf){0, SHOAL_INT64, 1, {2}, SHOAL_MULTI_DISCRETE, 0, 0, 0, most, 0};
  infos[0] = (shoal_leaf){"drawn", SHOAL_FLOAT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 0};
  infos[1] = (shoal_leaf){"flags", SHOAL_INT8, 1, {2}, SHOAL_BOX, 0, 0, 0, 0, 0};
  fields[0] = (shoal_leaf){"steps", SHOAL_INT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 0};
  fields[1] = (shoal_leaf){"total", SHOAL_FLOAT64, 0, {0}, SHOAL_BOX, 0, 0, 0, 0, 8};
  kernel.version = SHOAL_KERNEL_VERSION;
  kernel.name = "Counter";
  kernel.state_bytes = sizeof(state);
  kernel.observation_count = 2;
  kernel.observations = observations;
  kernel.action_count = 1;
  kernel.actions = actions;
  kernel.info_count = 2;
  kernel.infos = infos;
  kernel.field_count = 2;
  kernel.fields = fields;
  kernel.parameter_count = 1;
  kernel.parameters = parameters;
  kernel.option_count = 1;
  kernel.options = options;
  kernel.max_episode_steps = 25;
  kernel.reset = reset;
  kernel.step = step;
  %(change)s
  return &kernel;
}
"""


def source(step="", head="", change="", export=""):
    return PLAIN % {"step": step, "head": head, "change": change, "export": export}


class Counter(gymnasium.Env):
    """The same in Python."""

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
    return shoal.kernel.load(library)


def test_a_library_tells_its_spaces(kernel):
    assert kernel.name == "Counter"
    assert kernel.observation_space == Counter.observation_space
    assert kernel.action_space == Counter.action_space
    assert kernel.state_dtype.names == ("steps", "total")
    assert kernel.options == {"start": 0.0}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_library_does_as_the_same_environment_in_python(kernel, mode):
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
    """The contract, by a kernel of several leaves."""

    @pytest.fixture(autouse=True)
    def load(self, kernel):
        type(self).kernel = kernel

    def make_pool(self, num_envs, **options):
        return KernelPool(self.kernel, num_envs, **options)


def test_parameters_and_options_are_chosen_by_name(kernel):
    with shoal.make(kernel, 2, gain=10, max_episode_steps=3) as envs:
        envs.reset(seed=0, options={"start": 1})
        with pytest.raises(InvalidActionError, match="slot 1: element 1 of action is 4"):
            envs.step([[0, 0], [0, 4]])
        assert envs.step([[1, 0], [0, 0]])[1].tolist() == [11.0, 1.0]
        assert envs.get_attr("gain") == (10.0, 10.0)
        envs.step([[0, 0], [0, 0]])
        assert envs.step([[0, 0], [0, 0]])[3].tolist() == [False, True]
        with pytest.raises(ValueError, match=r"no reset option 'begin'; those it has: start"):
            envs.reset(options={"begin": 1})
        with pytest.raises(ValueError, match="start must be a number, got 'x'"):
            envs.reset(options={"start": "x"})
    with pytest.raises(KernelDefinitionError, match=r"no parameter 'gian'; those it has: gain"):
        shoal.make(kernel, 2, gian=1)
    with pytest.raises(ValueError, match="draws no pictures"):
        shoal.make(kernel, 2, render_mode="rgb_array")
    with pytest.raises(ValueError, match="Counter is a kernel"):
        shoal.make(kernel, 2, backend="process")


def test_a_kernel_is_made_again_in_another_process(kernel):
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


def test_a_kernel_in_cpp(tmp_path):
    text = source(head="#include <stdexcept>", export='extern "C"').replace(
        "(shoal_leaf){", "shoal_leaf{"
    )
    with shoal.make(shoal.kernel.load(compiled(tmp_path, text, suffix=".cpp")), 3) as envs:
        envs.reset(seed=0)
        envs.step([[0, 0]] * 3)


def stepped_until_failure(kernel, count=3000, slot=None, **options):
    envs = shoal.make(kernel, count, workers=2, **options)
    envs.reset(seed=0)
    actions = np.zeros((count, 2), np.int64)
    if slot is not None:
        actions[slot] = (2, 3)
    with pytest.raises(KernelError) as caught:
        envs.step(actions)
    return envs, str(caught.value)


def test_an_error_names_its_slot_and_the_others_go_on(tmp_path):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "the wheel came off");'
    kernel = shoal.kernel.load(compiled(tmp_path, source(step)))
    envs, message = stepped_until_failure(kernel, slot=[1717, 2000])
    assert "slot 1717 of 3000, in its step: the wheel came off (and 1 more slot)" in message
    steps = envs.state["steps"]
    assert steps[1717] == steps[2000] == 0
    assert (np.delete(steps, [1717, 2000]) == 1).all()
    # Those that have failed begin anew.
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


def test_what_is_not_a_number_is_an_error(tmp_path):
    step = "if (actions[2 * k + 1] == 3) s->total = 0.0 / (double)s->steps;"
    library = compiled(tmp_path, source(step))
    envs, message = stepped_until_failure(shoal.kernel.load(library), slot=77)
    assert "slot 77 of 3000, in its step: the kernel wrote NaN into" in message
    envs.close()
    with shoal.make(shoal.kernel.load(library, check_nan=False), 3) as envs:
        envs.reset(seed=0)
        assert np.isnan(envs.step([[2, 3]] * 3)[1]).all()


def test_a_return_value_without_meaning_is_an_error(tmp_path):
    kernel = shoal.kernel.load(compiled(tmp_path, source("if (s->steps >= 0) return 123456;")))
    _, message = stepped_until_failure(kernel)
    assert "the kernel returned 123456, expected SHOAL_OK" in message


def test_an_exception_in_cpp_is_an_error(tmp_path):
    text = source(
        'if (actions[2 * k + 1] == 3) throw std::runtime_error("no such gear");',
        head="#include <stdexcept>",
        export='extern "C"',
    ).replace("(shoal_leaf){", "shoal_leaf{")
    kernel = shoal.kernel.load(compiled(tmp_path, text, suffix=".cpp"))
    envs, message = stepped_until_failure(kernel, count=1, slot=0)
    assert "slot 0 of 1, in its step: the kernel threw: no such gear" in message
    envs.step([[0, 0]])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("kernel.version = 99;", "version 99 .* expected 2"),
        ("kernel.step = 0;", "needs both functions"),
        ("kernel.name = 0;", "has no name"),
        ("kernel.observation_count = 0;", "needs observations"),
        ("kernel.observation_count = 99;", "99 observations, expected from 0 to 32"),
        ("observations[0].dimensions = 7;", "7 dimensions"),
        ("observations[0].shape[1] = -2;", "a side of -2"),
        ("observations[0].name = 0;", "either all of the observations have names or none"),
        ('observations[1].name = "picture";', "have the same name"),
        ("observations[1].dtype = SHOAL_FLOAT32;", "SHOAL_DISCRETE goes with dtype int64"),
        ("infos[1].name = 0;", "info number 1 has no name"),
        ("fields[1].offset = 12;", "outside the state of 16 bytes"),
        ("kernel.max_episode_steps = -1;", "time limit is negative"),
        ("fields[1].name = fields[0].name;", "two of its fields are called steps"),
        ('infos[0].name = "final_obs";', "no info can be called 'final_obs'"),
        ("actions[0].low = 1.0;", "SHOAL_MULTI_DISCRETE counts from 0"),
        ("observations[1].high = 2.5;", "counts from 0 to a whole number"),
        ("kernel.infos = 0;", "it has 2 infos, but says nothing of them"),
        ("return 0;", "returned NULL"),
    ],
)
def test_a_kernel_that_is_none_is_refused(tmp_path, change, complaint):
    library = compiled(tmp_path, source(change=change))
    with pytest.raises(KernelDefinitionError, match=complaint):
        shoal.kernel.load(library)


def test_a_library_that_is_none_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        shoal.kernel.load(tmp_path / "nowhere.so")
    with pytest.raises(KernelDefinitionError, match="exports no function shoal_kernel_entry"):
        shoal.kernel.load(compiled(tmp_path, "int nothing(void) { return 0; }"))


@pytest.mark.slow
def test_a_write_outside_of_the_row_is_found_by_the_sanitizer(tmp_path):
    step = "if (slots->first + k == 2) s[1].total = 1.0;"  # of the last slot's neighbour
    library = compiled(tmp_path, source(step), "-fsanitize=address", "-g")
    script = f"""
import shoal
envs = shoal.make(shoal.kernel.load({str(library)!r}), 3)
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


def test_a_new_kernel_builds_and_passes_its_tests(tmp_path):
    folder = write_kernel("CatchBall", tmp_path / "new")
    assert sorted(path.name for path in folder.iterdir()) == [
        "Makefile",
        "README.md",
        "catch_ball.c",
        "test_catch_ball.py",
    ]
    ended = subprocess.run(
        ["make", "test", f"PYTHON={sys.executable}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "passed" in ended.stdout
    with pytest.raises(FileExistsError):
        write_kernel("CatchBall", folder)
    with pytest.raises(ValueError, match="letters, digits"):
        write_kernel("catch-ball")


def shoal_command(*arguments, cwd):
    command = [sys.executable, "-c", "from shoal.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_line_writes_a_kernel(tmp_path):
    ended = shoal_command("new-kernel", "Slide", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "make test" in ended.stdout
    assert (tmp_path / "slide" / "slide.c").exists()
    again = shoal_command("new-kernel", "Slide", cwd=tmp_path)
    assert again.returncode == 1
    assert "exists already" in again.stderr
    assert shoal_command("version", cwd=tmp_path).stdout.strip() == shoal.__version__


@shoal.kernel(
    observation_space=spaces.Tuple((spaces.Box(-9, 9, (2,), np.float64), spaces.Discrete(50))),
    action_space=spaces.Dict(push=spaces.Box(-1, 1, (2,), np.float64), gear=spaces.Discrete(3)),
    state=[("place", np.float64, (2,)), ("steps", np.int64)],
    parameters={"scale": 1.0},
    options={"spread": 1.0},
    infos={"dice": np.int64, "both": (np.float32, (2,))},
    max_episode_steps=30,
)
class Wander:
    """A walk on a plane, with several leaves of everything."""

    @staticmethod
    def reset(state, random, parameters, options, observation, info):
        for axis in range(2):
            state.place[axis] = random_uniform(random, -options.spread, options.spread)
            observation[0][axis] = state.place[axis]
            info.both[axis] = state.place[axis]
        state.steps = 0
        observation[1][0] = 0
        info.dice[0] = random_below(random, 6)

    @staticmethod
    def step(state, random, parameters, action, observation, info):
        for axis in range(2):
            state.place[axis] += parameters.scale * action.push[axis] * action.gear + random_double(
                random
            )
            observation[0][axis] = state.place[axis]
            info.both[axis] = state.place[axis]
        state.steps += 1
        observation[1][0] = state.steps
        info.dice[0] = random_below(random, 6)
        distance = abs(state.place[0]) + abs(state.place[1])
        return -distance, distance > 20.0, state.steps == 29 and action.gear == 0

    @staticmethod
    def render(state):
        picture = np.zeros((8, 8, 3), np.uint8)
        picture[int(state["steps"]) % 8] = 255
        return picture


class WanderInPython(gymnasium.Env):
    """The same in Python."""

    observation_space = Wander.observation_space
    action_space = Wander.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0, 2)
        self.steps = 0
        return self._told()

    def step(self, action):
        for axis in range(2):
            self.place[axis] += (
                1.0 * action["push"][axis] * action["gear"] + self.np_random.random()
            )
        self.steps += 1
        observation, info = self._told()
        distance = np.abs(self.place).sum()
        cut = self.steps == 29 and action["gear"] == 0
        return observation, -distance, distance > 20.0, cut, info

    def _told(self):
        dice = int(self.np_random.integers(6))
        return (self.place.copy(), self.steps), {
            "dice": dice,
            "both": self.place.astype(np.float32),
        }


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_compiled_kernel_does_as_the_same_environment_in_python(mode):
    native = shoal.make(Wander, 5, autoreset_mode=mode)
    python = shoal.make(
        lambda: gymnasium.wrappers.TimeLimit(WanderInPython(), 30),
        5,
        backend="inline",
        autoreset_mode=mode,
    )
    assert_identical(native.reset(seed=6), python.reset(seed=6))
    for _ in range(100):
        actions = python.action_space.sample()
        assert_identical(native.step(actions), python.step(actions))


class TestCompiled(PoolConformance):
    """The contract, by a kernel that numba compiles."""

    def make_pool(self, num_envs, **options):
        return KernelPool(Wander, num_envs, **options)


def test_a_compiled_kernel_has_pictures_parameters_and_fields():
    with shoal.make(Wander, 3, scale=0.0, render_mode="rgb_array") as envs:
        envs.reset(seed=0, options={"spread": 0.0})
        assert not envs.state["place"].any()
        assert envs.render_tiled(columns=3).shape == (8, 24, 3)
        envs.state["steps"] = [1, 2, 3]
        pictures = envs.render()
        assert [int(picture[:, 0, 0].argmax()) for picture in pictures] == [1, 2, 3]
        assert envs.get_attr("scale") == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"state": np.float64}, "state must name its fields"),
        ({"observation_space": spaces.Text(3)}, "have no fixed shape"),
        ({"infos": {"wrong": np.complex64}}, "no arrays of dtype complex64|iinfo|Invalid"),
        ({"infos": {"more": np.float64}}, r"written as reset\(.*called as reset\(.*, info\)"),
        ({"max_episode_steps": 1.5}, "max_episode_steps must be a positive integer"),
        ({"options": {"reset_mask": 1}}, "no option can be called 'reset_mask'"),
        ({"parameters": {"num_envs": 1}}, "no parameter can be called 'num_envs'"),
    ],
)
def test_a_compiled_kernel_that_makes_no_sense_is_refused(changed, complaint):
    given = {
        "observation_space": spaces.Box(-1, 1, (1,)),
        "action_space": spaces.Discrete(2),
        "state": [("x", np.float64)],
    }

    class Nothing:
        @staticmethod
        def reset(state, random, parameters, options, observation):
            observation[0] = 0.0

        @staticmethod
        def step(state, random, parameters, action, observation):
            observation[0] = 0.0
            return 0.0, False, False

    with pytest.raises((KernelDefinitionError, ValueError), match=complaint):
        shoal.kernel(**{**given, **changed})(Nothing)
    del Nothing.step
    with pytest.raises(KernelDefinitionError, match="kernel Nothing needs a function 'step'"):
        shoal.kernel(**given)(Nothing)


@shoal.kernel(
    observation_space=spaces.Box(-1, 1, (1,)),
    action_space=spaces.Discrete(4),
    state=[("count", np.int64)],
)
class Fragile:
    """Fails if it is told to."""

    @staticmethod
    def reset(state, random, parameters, options, observation):
        state.count = 0
        observation[0] = random_double(random)

    @staticmethod
    def step(state, random, parameters, action, observation):
        observation[0] = 0.0
        state.count += 1
        if action == 2:
            raise ValueError("as told")
        if action == 3:
            observation[0] = 1.0 / (state.count - state.count)
        return 1.0, False, False


def test_what_a_compiled_kernel_raises_is_the_failure_of_one_slot():
    with shoal.make(Fragile, 1000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.zeros(1000, np.int64)
        actions[[437, 999]] = 2
        with pytest.raises(KernelError, match="slot 437 of 1000, in its step: the function"):
            envs.step(actions)
        assert (envs.state["count"] == 1).all()
        actions[:] = 3
        assert np.isinf(envs.step(actions)[0]).sum() == 998  # as in C: no error, but infinity


def test_a_compiled_kernel_that_numba_does_not_understand_says_so():
    class Odd:
        @staticmethod
        def reset(state, random, parameters, options, observation):
            observation[0] = state.missing

        @staticmethod
        def step(state, random, parameters, action, observation):
            return 0.0, False, False

    with pytest.raises(KernelDefinitionError, match=r"numba cannot compile its 'reset'.*missing"):
        shoal.kernel(
            observation_space=spaces.Box(-1, 1, (1,)),
            action_space=spaces.Discrete(2),
            state=[("x", np.float64)],
        )(Odd)


def test_a_compiled_kernel_travels_to_other_processes():
    copied = cloudpickle.loads(cloudpickle.dumps(Fragile))
    one, other = shoal.make(Fragile, 3), shoal.make(copied, 3)
    assert_identical(one.reset(seed=3), other.reset(seed=3))


def test_a_library_that_was_built_again_is_loaded_again(tmp_path):
    first = shoal.kernel.load(compiled(tmp_path, source()))
    os.unlink(tmp_path / "kernel.so")
    again = shoal.kernel.load(compiled(tmp_path, source(change='kernel.name = "Other";')))
    assert (first.name, again.name) == ("Counter", "Other")
    shoal.make(first, 2).reset(seed=0)


def test_a_kernel_without_a_state(tmp_path):
    change = "kernel.state_bytes = 0; kernel.field_count = 0;"
    kept = "state* states = (state*)slots->state;"
    text = source(change=change).replace(kept, "static state states[99];")
    with shoal.make(shoal.kernel.load(compiled(tmp_path, text)), 2) as envs:
        envs.reset(seed=0)
        envs.step([[0, 0], [0, 0]])
        assert envs.state.shape == (2,)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_slot_that_has_failed_is_reset_before_it_goes_on(tmp_path, mode):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "no");'
    kernel = shoal.kernel.load(compiled(tmp_path, source(step)))
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


def test_a_failure_arrives_with_its_slot_and_no_other(tmp_path):
    step = 'if (actions[2 * k + 1] == 3) return shoal_fail(slots, k, "no");'
    kernel = shoal.kernel.load(compiled(tmp_path, source(step)))
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


SLOW = """
#include <time.h>
static void wait(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, 0);
}
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A kernel that takes its time where an action says so."""
    text = source("if (actions[2 * k + 1] == 3) wait(1.5);", head=SLOW)
    text = "#define _POSIX_C_SOURCE 200809L\n" + text
    return shoal.kernel.load(compiled(tmp_path_factory.mktemp("slow"), text))


def test_a_slow_kernel_can_be_interrupted_and_left(slow):
    import signal

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    count = 3000  # enough for the thread to be woken
    envs = shoal.make(slow, count, workers=1)
    envs.reset(seed=0)
    for _ in range(5):
        envs.step(np.zeros((count, 2), np.int64))
    actions = np.zeros((count, 2), np.int64)
    actions[0] = (1, 3)
    envs.send(actions)
    time.sleep(0.2)  # the thread has begun with the first chunk
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0.05)
    previous = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Alarm):
            envs.recv()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - begun < 1.2
    assert envs.pool.in_flight == count
    assert envs.recv().slots.tolist() == list(range(count))
    envs.close()


def test_a_thread_that_does_not_come_back_is_left_and_does_no_harm(slow):
    script = f"""
import sys, time, warnings, gc
import numpy as np, shoal
envs = shoal.make(shoal.kernel.load({str(slow.recipe.args[0])!r}), 3000, workers=1)
envs.reset(seed=0)
actions = np.zeros((3000, 2), np.int64)
for _ in range(5):
    envs.step(actions)
actions[0] = 0, 3
envs.send(actions)
time.sleep(0.2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    envs.close(timeout=0.05)
assert "still inside the kernel" in str(caught[0].message), caught
del envs
gc.collect()
others = [np.ones(1000) for _ in range(1000)]
time.sleep(2.0)
print("alive")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr


def test_a_child_is_told_what_it_has_lost(slow):
    count = 3000
    with shoal.make(slow, count, workers=1) as envs:
        envs.reset(seed=0)
        for _ in range(5):
            envs.step(np.zeros((count, 2), np.int64))
        actions = np.zeros((count, 2), np.int64)
        actions[0] = (1, 3)
        envs.send(actions)
        time.sleep(0.1)  # the thread has begun with what takes longer than a fork waits
        child = os.fork()
        if child == 0:
            status = 1
            try:
                envs.recv(timeout=20)
            except RuntimeError as error:
                status = 0 if "its slots are lost" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert envs.recv().slots.tolist() == list(range(count))


def test_a_state_outlives_resets_but_for_those_with_a_seed(tmp_path):
    remember = """
    static int64_t remember(const shoal_slots* slots) {
      double* numbers = (double*)slots->state;
      for (int64_t k = 0; k < slots->count; ++k) numbers[2 * k + 1] += 1.0;
      return SHOAL_OK;
    }
    """
    code = source(head=remember, change="kernel.reset = remember;")
    with shoal.make(shoal.kernel.load(compiled(tmp_path, code)), 3) as envs:
        for seed, expected in ((7, [1, 1, 1]), (None, [2, 2, 2]), ([5, None, 5], [1, 3, 1])):
            envs.reset(seed=seed)
            assert envs.state["total"].tolist() == expected


def test_statistics_do_not_overwrite_an_info(tmp_path):
    kernel = shoal.kernel.load(compiled(tmp_path, source(change='infos[0].name = "episode";')))
    with shoal.make(kernel, 2, statistics=True, max_episode_steps=1) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match="would overwrite the info 'episode'"):
            envs.step([[0, 0]] * 2)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    ended = shoal_command("new-kernel", "Slide", "--folder", "file/below", cwd=tmp_path)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "file" in ended.stderr


def test_the_example_is_short():
    example = Path(__file__).parents[2] / "examples" / "kernel_in_numba.py"
    assert len(example.read_text().splitlines()) < 60
