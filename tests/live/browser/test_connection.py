"""The end of a vector, of a program and of a connection."""

import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

import shoal
from tests.live.browser.background_stepping import FlickeringEnv, Stepping

PROGRAM = """
import time
import shoal, shoal.live

envs = shoal.make("CartPole-v1", num_envs=4)
print(shoal.live.show(envs, port=0).url, flush=True)
envs.reset(seed=0)
while True:
    envs.step([0, 1, 0, 1])
    time.sleep(0.01)
"""


class Cable:
    """What lies between a browser and a server: it can be cut, and led to another server."""

    def __init__(self, url):
        self.own = urlsplit(url)
        self.other = self.own
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends = []
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()
        port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self.own.path}"

    def cut(self):
        self._is_cut = True
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def mend(self, url=None):
        """Lead to this server from now on, or to the same one again."""
        self.other = self.own if url is None else urlsplit(url)
        self._is_cut = False

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection((self.other.hostname, self.other.port))
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data.replace(self.own.path.encode(), self.other.path.encode()))
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def cable(hockey):
    made = Cable(hockey.url)
    yield made
    made.close()


def test_a_vector_that_is_closed_has_ended(careless_window):
    window = careless_window
    with Stepping(shoal.make([FlickeringEnv] * 2, backend="inline")) as stepping:
        window.open(stepping.url)
        window.wait_for(lambda: window.number("#steps") > 0)
    window.wait_for(lambda: window.text("#status") == "ended")
    window.wait_for(lambda: "end" in window.texts("#log .kind"))
    assert window.number("#steps") > 0, "what there was can still be read"
    assert window.run("return document.title").startswith("ended")


def test_why_it_has_ended_is_told(careless_window):
    window = careless_window
    with Stepping(shoal.make([FlickeringEnv] * 2, backend="inline")) as stepping:
        window.open(stepping.url)
        stepping.halt()
        stepping.page.close()
        window.wait_for(lambda: window.text("#status") == "ended: no longer shown")


def test_a_program_that_was_killed_is_a_lost_connection(careless_window):
    window = careless_window
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            window.open(program.stdout.readline().strip())
            window.wait_for(lambda: window.number("#steps") > 0)
        finally:
            program.send_signal(signal.SIGKILL)
    window.wait_for(lambda: window.text("#status") == "connection lost, trying again")
    assert window.number("#steps") > 0


def test_a_connection_that_comes_back_goes_on(careless_window, hockey, cable):
    window = careless_window
    hockey.page.watcher.event_log.add("note", "before the loss")
    window.open(cable.url)
    window.wait_for(lambda: window.number("#steps") > 0)
    before = len(window.texts("#log li"))
    cable.cut()
    window.wait_for(lambda: window.text("#status") == "connection lost, trying again")
    steps = window.number("#steps")
    cable.mend()
    window.wait_for(lambda: window.text("#status") == "running")
    window.wait_for(lambda: window.number("#steps") > steps)
    assert len(window.texts("#log li")) == before, "no event is there twice"


def test_another_run_behind_the_same_link_begins_anew(careless_window, hockey, cable):
    window = careless_window
    window.open(cable.url)
    hockey.page.watcher.event_log.add("note", "of the run before")
    window.wait_for(lambda: "of the run before" in window.text("#log"))
    cable.cut()
    with Stepping(shoal.make([lambda: FlickeringEnv("rgb_array")], backend="inline")) as other:
        cable.mend(other.url)
        window.wait_for(lambda: window.text("#title") != "shoal/HockeyOne-v0")
        window.wait_for(lambda: window.texts(".tile") == ["0"])
        assert "of the run before" not in window.text("#log")
        assert window.texts("#log .kind") == ["start"]
        window.wait_for(lambda: window.sees(".tile:not(.waiting)"))


def test_a_wrong_token_shows_nothing(careless_window, hockey):
    wrong = hockey.url[:-4] + "xxx/"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(wrong)
    careless_window.driver.get(wrong)
    assert "Hockey" not in careless_window.everything()
    assert not careless_window.sees("#status")
