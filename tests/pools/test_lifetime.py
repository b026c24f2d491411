"""A vector leaves no process, descriptor, thread or memory behind, however it ends."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import pytest

import shoal
from shoal.pools import ProcessPool, ThreadPool
from shoal.testing import ProbeEnv
from tests.faulty import FaultyEnv, fault


def children(pid=None):
    """Return the children of a process that are not zombies."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == (pid or os.getpid()) and state != "Z":
            pids.append(int(folder.name))
    return pids


def zombies():
    return [
        folder.name
        for folder in Path("/proc").glob("[0-9]*")
        if (stat := (folder / "stat")).exists()
        and stat.read_text().rpartition(")")[2].split()[:2] == ["Z", str(os.getpid())]
    ]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


def shared_memory():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def resident_kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize(
    ("make", "cycles"),
    [
        (partial(ProcessPool, start="fork", doorbell="futex"), 10),
        (partial(ProcessPool, start="fork", doorbell="pipe"), 6),
        (partial(ThreadPool, doorbell="futex"), 150),
        (partial(ThreadPool, doorbell="pipe"), 150),
        (ProcessPool, 4),
        pytest.param(ProcessPool, 300, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_opening_and_closing_repeatedly_leaks_nothing(make, cycles):
    def cycle():
        pool = make([ProbeEnv] * 3, workers=2)
        pool.reset(seeds=range(3))
        pool.recv()
        pool.close()

    for _ in range(3):
        cycle()
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), threading.active_count(), children()
    names, memory = shared_memory(), resident_kilobytes()
    for _ in range(cycles):
        cycle()
    gc.collect()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count(), children()) == before
    assert shared_memory() == names
    assert resident_kilobytes() - memory < 8192
    assert zombies() == []


@pytest.mark.parametrize("how", ["factory", "spaces", "pickle"])
def test_a_failing_constructor_leaks_nothing(how):
    def broken():
        raise OSError("no such device")

    lock = threading.Lock()
    odd = {"factory": broken, "spaces": FaultyEnv, "pickle": lambda: ProbeEnv(lock)}[how]
    before = len(os.listdir("/proc/self/fd")), children()
    for caller_works in (True, False):
        with pytest.raises((OSError, RuntimeError, TypeError)):
            ProcessPool([odd, ProbeEnv, ProbeEnv], workers=2, caller_works=caller_works)
    gc.collect()
    assert (len(os.listdir("/proc/self/fd")), children()) == before
    assert zombies() == []


def test_a_collected_vector_is_closed_with_a_warning():
    before = set(children())
    envs = shoal.make(ProbeEnv, num_envs=2, backend="process")
    pids = set(children()) - before
    envs.reset(seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del envs
        gc.collect()
    messages = [str(each.message) for each in caught if each.category is ResourceWarning]
    assert "a vector of 2 environments was not closed" in messages
    assert not any(map(is_running, pids))


def test_a_closed_vector_is_collected_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = shoal.make(ProbeEnv, num_envs=2, backend="process")
        envs.close()
        envs.close()
        del envs
        gc.collect()


def test_terminate_does_not_wait():
    before = children()
    pool = ProcessPool([FaultyEnv] * 2, workers=2, caller_works=False)
    pool.reset()
    pool.recv()
    pool.send([fault("sleep")] * 2)
    start = time.monotonic()
    pool.close(terminate=True)
    assert time.monotonic() - start < 1.0
    assert children() == before


class Script:
    """A script in a separate process."""

    def __init__(self, body, *, stdin=False, **options):
        head = "import os, sys, time, signal\nimport shoal, gymnasium as gym, numpy as np\n"
        text = head + textwrap.dedent(body)
        command = [sys.executable, "-"] if stdin else [sys.executable, "-c", text]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            **options,
        )
        if stdin:
            self._process.stdin.write(text)
            self._process.stdin.close()
            self._process.stdin = None
        self.pid = self._process.pid

    def line(self):
        return self._process.stdout.readline().strip()

    def signal(self, number):
        self._process.send_signal(number)

    def finish(self, timeout=30):
        try:
            output, errors = self._process.communicate(timeout=timeout)
        finally:
            self._process.kill()  # its workers end with it
        return self._process.returncode, output, errors


BUSY = """
    from tests.faulty import FaultyEnv, fault
    envs = shoal.make(FaultyEnv, num_envs=4, backend="process", workers=2, caller_works=False)
    envs.reset(seed=1)
    print(*envs.call("pid"), flush=True)
    {work}
"""


@pytest.mark.parametrize("work", ["time.sleep(60)", "envs.step([fault('sleep')] * 4)"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_within_a_second_of_their_parent(work, number):
    names = shared_memory()
    script = Script(BUSY.format(work=work))
    pids = set(map(int, script.line().split()))
    assert len(pids) == 2
    assert all(map(is_running, pids))
    time.sleep(0.3)
    script.signal(number)
    wait_until(lambda: not any(map(is_running, pids)), seconds=1.0)
    script.finish()
    assert shared_memory() == names


@pytest.mark.parametrize(
    "work",
    [
        "envs.step([fault('sleep')] * 4)",
        "envs.send([fault('sleep')] * 4); envs.recv()",
        "while True: envs.step([0] * 4)",
        "with envs: envs.step([fault('wait')] * 4); time.sleep(60)",
    ],
)
def test_ctrl_c_prints_one_traceback_and_ends_all_workers(work):
    script = Script(BUSY.format(work=work), start_new_session=True)
    pids = set(map(int, script.line().split()))
    time.sleep(0.5)
    os.killpg(script.pid, signal.SIGINT)  # to the whole process group, as a terminal does
    code, _, errors = script.finish(timeout=10)
    assert code in (1, 130, -signal.SIGINT)
    assert errors.count("Traceback (most recent call last)") == 1, errors
    assert errors.strip().endswith("KeyboardInterrupt")
    wait_until(lambda: not any(map(is_running, pids)), seconds=1.0)


def test_a_script_may_end_without_closing_its_vectors():
    script = Script(
        """
        envs = shoal.make("CartPole-v1", num_envs=4, backend="process")
        threads = shoal.make("CartPole-v1", num_envs=4, backend="thread")
        print(envs.reset(seed=1)[0].shape, threads.reset(seed=1)[0].shape)
        """
    )
    code, output, errors = script.finish()
    assert (code, output, errors) == (0, "(4, 4) (4, 4)\n", "")


NO_GUARD = """
    class Mine(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)
        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}
        def step(self, action):
            return np.full(2, action, np.float32), 1.0, False, False, {"of": type(self).__name__}

    gym.register("Mine-v0", Mine)
    print("main runs", __name__)
    for what in (Mine, "Mine-v0", lambda: gym.make("Mine-v0")):
        envs = shoal.make(what, num_envs=4, backend="process", workers=2)
        envs.reset(seed=1)
        print(envs.step([1, 0, 1, 0])[4]["of"].tolist())
        envs.close()
"""


@pytest.mark.parametrize("stdin", [False, True])
def test_a_script_needs_no_main_guard(stdin):
    code, output, errors = Script(NO_GUARD, stdin=stdin).finish()
    assert errors == ""
    assert code == 0
    assert output.splitlines() == ["main runs __main__", *[str(["Mine"] * 4)] * 3]


def test_a_worker_imports_only_the_registered_environments_that_it_makes(tmp_path):
    (tmp_path / "heavy_module.py").write_text(
        "from gymnasium.envs.classic_control import CartPoleEnv\nclass Heavy(CartPoleEnv): pass\n"
    )
    script = Script(
        f"""
        sys.path.insert(0, {str(tmp_path)!r})
        from heavy_module import Heavy
        gym.register("Heavy-v0", Heavy)

        def imported(env):
            return "heavy_module" in sys.modules

        for name in ("CartPole-v1", "Heavy-v0"):
            envs = shoal.make(name, num_envs=2, backend="process", caller_works=False)
            print(name, *envs.pool.call(imported), envs.get_attr("spec")[0] == gym.make(name).spec)
            envs.close()
        """
    )
    code, output, errors = script.finish()
    assert (code, errors) == (0, "")
    assert output.splitlines() == ["CartPole-v1 False False True", "Heavy-v0 True True True"]


def test_workers_use_one_thread_for_linear_algebra():
    script = Script(
        """
        os.environ["OMP_NUM_THREADS"] = "7"
        class Env(gym.Env):
            observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
            action_space = gym.spaces.Discrete(2)
            def limit(self):
                return os.environ.get("OMP_NUM_THREADS")
        for given in ({}, {"worker_threads": 3}, {"worker_threads": None}):
            envs = shoal.make(Env, num_envs=2, backend="process", caller_works=False, **given)
            print(envs.call("limit")[0])
            envs.close()
        print(os.environ.get("OMP_NUM_THREADS"))
        """
    )
    assert script.finish()[1].split() == ["1", "3", "7", "7"]


def test_pinned_workers_have_a_core_each():
    cores = sorted(os.sched_getaffinity(0))
    pool = ProcessPool([FaultyEnv] * 2, workers=2, caller_works=False, pin=True)
    allowed = [os.sched_getaffinity(pid) for pid in pool.call("pid")]
    assert all(len(each) == 1 for each in allowed)
    assert len(set.union(*allowed)) == min(2, len(cores))
    pool.close()


def test_a_fork_of_the_caller_does_not_end_the_workers():
    script = Script(
        """
        envs = shoal.make("CartPole-v1", num_envs=2, backend="process", start="fork")
        envs.reset(seed=1)
        if (child := os.fork()) == 0:
            del envs
            sys.exit()
        os.waitpid(child, 0)
        print(envs.step([0, 1])[1].tolist())
        envs.close()
        """
    )
    assert script.finish() == (0, "[1.0, 1.0]\n", "")


def test_a_stopped_worker_does_not_outlive_its_caller():
    script = Script(BUSY.format(work="time.sleep(60)"))
    pids = set(map(int, script.line().split()))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    script.signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, pids)), seconds=1.0)
    script.finish()


def test_vectors_made_in_a_thread_outlive_it():
    made = []
    thread = threading.Thread(
        target=lambda: made.append(shoal.make(ProbeEnv, num_envs=2, backend="process"))
    )
    thread.start()
    thread.join()
    time.sleep(0.2)
    made[0].reset(seed=1)
    made[0].close()
