"""An environment whose actions and constructor argument select a fault."""

import os
import signal
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np
from gymnasium import spaces

FAULTS = [
    "nothing",
    "exit",
    "kill",
    "segfault",
    "stop",
    "raise",
    "odd error",
    "unpicklable error",
    "sleep",
    "print",
    "fork",
    "thread",
    "unpicklable info",
    "system exit",
    "big info",
    "wait",
]


def fault(name):
    """Return the action that causes a fault."""
    return FAULTS.index(name)


class OddError(ValueError):
    """An error whose constructor takes other arguments than its `args`."""

    def __init__(self, code, *, reason):
        super().__init__(f"code {code}: {reason}")
        self.code = code


class UnpicklableError(LookupError):
    """An error that cannot be pickled."""

    def __init__(self, message):
        super().__init__(message, threading.Lock())

    def __str__(self):
        return str(self.args[0])


class FaultyEnv(gymnasium.Env):
    """Counts its steps in the observation, and causes the fault that the action selects."""

    metadata = {"render_modes": ["ansi"]}
    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Discrete(len(FAULTS))

    def __init__(self, label=0, fails_in=None, length=10**9):
        self.render_mode = "ansi"
        self.label = label
        self.fails_in = fails_in
        self._length = length
        self._time = 0
        self._fail("init")

    def _fail(self, where):
        if self.fails_in == where:
            time.sleep(0.05)
            raise ArithmeticError(f"{self.label} fails in {where}")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._fail("reset")
        self._time = 0
        self.start = self.np_random.random()
        return np.array([self.start, 0.0]), {}

    def step(self, action):
        self._fail("step")
        self._time += 1
        info = {}
        match FAULTS[action]:
            case "exit":
                os._exit(7)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "raise":
                raise ArithmeticError(f"{self.label} fails as asked")
            case "odd error":
                raise OddError(3, reason=f"{self.label} is odd")
            case "unpicklable error":
                raise UnpicklableError(f"{self.label} holds a lock")
            case "sleep":
                time.sleep(30)
            case "wait":
                time.sleep(0.2)
            case "print":
                print(f"a word from {self.label}", flush=True)
                print("and an error", file=sys.stderr, flush=True)
            case "fork":
                if (child := os.fork()) == 0:
                    os._exit(0)
                os.waitpid(child, 0)
                subprocess.run(["true"], check=True)
            case "thread":
                threading.Thread(target=lambda: None).start()
            case "unpicklable info":
                info = {"lock": threading.Lock()}
            case "system exit":
                sys.exit(5)
            case "big info":
                info = {"data": np.full(400_000, self.label, np.float64)}
        observation = np.array([self.start, float(self._time)])
        return observation, float(self.label), False, self._time >= self._length, info

    def render(self):
        self._fail("render")
        return f"{self.label}@{self._time}"

    def pid(self):
        """Return the id of the environment's process."""
        return os.getpid()

    def close(self):
        self._fail("close")
