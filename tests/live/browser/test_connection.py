"""The page when its vector is closed, its program is killed, or the connection is lost."""

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
from tests.live.browser.background_stepping import FlickeringEnv, SteppedVector

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


class Proxy:
    """A proxy between browser and server that can disconnect and switch to another server."""

    def __init__(self, url):
        self.original = urlsplit(url)
        self.target = self.original
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = []
        self._is_connected = True
        threading.Thread(target=self._accept, daemon=True).start()
        port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self.original.path}"

    def disconnect(self):
        self._is_connected = False
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._sockets.clear()

    def connect(self, url=None):
        """Connect to this server from now on, or to the original one."""
        self.target = self.original if url is None else urlsplit(url)
        self._is_connected = True

    def close(self):
        self._listener.close()
        self.disconnect()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._is_connected:
                    client.close()
                    continue
                server = socket.create_connection((self.target.hostname, self.target.port))
                self._sockets += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=ends, daemon=True).start()

    def _forward(self, source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                path = self.original.path.encode()
                target.sendall(data.replace(path, self.target.path.encode()))
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(hockey):
    proxy = Proxy(hockey.url)
    yield proxy
    proxy.close()


def test_closing_the_vector_shows_ended(unchecked_window):
    window = unchecked_window
    with SteppedVector(shoal.make([FlickeringEnv] * 2, backend="inline")) as stepping:
        window.open(stepping.url)
        window.wait_for(lambda: window.number("#steps") > 0)
    window.wait_for(lambda: window.text("#status") == "ended")
    window.wait_for(lambda: "end" in window.texts("#log .kind"))
    assert window.number("#steps") > 0, "the last numbers stay visible"
    assert window.run("return document.title").startswith("ended")


def test_the_reason_for_the_end_is_shown(unchecked_window):
    window = unchecked_window
    with SteppedVector(shoal.make([FlickeringEnv] * 2, backend="inline")) as stepping:
        window.open(stepping.url)
        stepping.halt()
        stepping.page.close()
        window.wait_for(lambda: window.text("#status") == "ended: page closed")


def test_killing_the_program_shows_a_lost_connection(unchecked_window):
    window = unchecked_window
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            window.open(program.stdout.readline().strip())
            window.wait_for(lambda: window.number("#steps") > 0)
        finally:
            program.send_signal(signal.SIGKILL)
    window.wait_for(lambda: window.text("#status") == "connection lost, reconnecting")
    assert window.number("#steps") > 0


def test_the_page_continues_after_a_reconnection(unchecked_window, hockey, proxy):
    window = unchecked_window
    hockey.page.watcher.event_log.add("note", "before the loss")
    window.open(proxy.url)
    window.wait_for(lambda: window.number("#steps") > 0)
    before = len(window.texts("#log li"))
    proxy.disconnect()
    window.wait_for(lambda: window.text("#status") == "connection lost, reconnecting")
    steps = window.number("#steps")
    proxy.connect()
    window.wait_for(lambda: window.text("#status") == "running")
    window.wait_for(lambda: window.number("#steps") > steps)
    assert len(window.texts("#log li")) == before, "no event is listed twice"


def test_another_run_at_the_same_address_replaces_the_first(unchecked_window, hockey, proxy):
    window = unchecked_window
    window.open(proxy.url)
    hockey.page.watcher.event_log.add("note", "of the first run")
    window.wait_for(lambda: "of the first run" in window.text("#log"))
    proxy.disconnect()
    envs = shoal.make([lambda: FlickeringEnv("rgb_array")], backend="inline")
    with SteppedVector(envs) as other:
        proxy.connect(other.url)
        window.wait_for(lambda: window.text("#title") != "shoal/HockeyOne-v0")
        window.wait_for(lambda: window.texts(".tile") == ["0"])
        assert "of the first run" not in window.text("#log")
        assert window.texts("#log .kind") == ["start"]
        window.wait_for(lambda: window.is_visible(".tile:not(.waiting)"))


def test_with_a_wrong_token_nothing_is_shown(unchecked_window, hockey):
    wrong = hockey.url[:-4] + "xxx/"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(wrong)
    unchecked_window.driver.get(wrong)
    assert "Hockey" not in unchecked_window.page_text()
    assert not unchecked_window.is_visible("#status")
