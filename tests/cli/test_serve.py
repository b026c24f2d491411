"""``shoal serve`` hosts what it is told to, as it is told to."""

import inspect
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shoal
from shoal._cli.app import app
from shoal.errors import AuthenticationError, ConnectionLostError, RefusedError

CELL = """
import shoal
from shoal.remote import Hosted

def cell(num_envs=1):
    return shoal.make("Pendulum-v1", num_envs)

class Shelf:
    cell = staticmethod(cell)

only = Hosted(cell, exclusive=True)
number = 3
"""


@pytest.fixture
def folder(tmp_path):
    """Where the command is called."""
    (tmp_path / "mine.py").write_text(CELL)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "token").write_text("  secret\n")
    return tmp_path


# What reaches shoal.serve


class Listening:
    """A server that has been closed already."""

    urls = ("tcp://here:1", "unix:///there")
    names = ("it", "that")
    waited = 0
    closed = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed += 1

    def wait(self):
        self.waited += 1


@pytest.fixture
def arguments_of(folder, monkeypatch):
    """Runs the command, and gives what it has called ``shoal.serve`` with."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.delenv("SHOAL_TOKEN", raising=False)
    signature = inspect.signature(shoal.serve)
    calls = []

    def serve(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        calls.append((given.arguments, Listening()))
        return calls[-1][1]

    monkeypatch.setattr(shoal, "serve", serve)

    def arguments_of(*words):
        result = CliRunner().invoke(app, ["serve", *words])
        assert result.exit_code == 0, result.output
        arguments, server = calls.pop()
        assert (server.waited, server.closed, calls) == (1, 1, [])
        assert result.stderr.splitlines() == [
            f"Listening at {url} with it, that" for url in server.urls
        ]
        return arguments

    return arguments_of


def test_without_options_the_server_is_that_of_python(arguments_of):
    arguments = arguments_of("CartPole-v1")
    assert arguments.pop("hosted") == {"CartPole-v1": "CartPole-v1"}
    defaults = {
        name: each.default
        for name, each in inspect.signature(shoal.remote.serve).parameters.items()
        if name != "hosted"
    }
    assert arguments == defaults | {"bind": ["tcp://127.0.0.1:7711"]}


OPTIONS = [
    (["--bind", "tcp://127.0.0.1:0"], "bind", ["tcp://127.0.0.1:0"]),
    (["--bind", "unix://a", "--bind", "tcp://h:1"], "bind", ["unix://a", "tcp://h:1"]),
    (["--token-file", "token"], "token", "secret"),
    (["--certificate", "c", "--key", "k"], "tls", (Path("c"), Path("k"))),
    (
        ["--certificate", "c", "--key", "k", "--authority", "a"],
        "tls",
        (Path("c"), Path("k"), Path("a")),
    ),
    (["--max-sessions", "3"], "max_sessions", 3),
    (["--session-ttl", "1.5"], "session_ttl", 1.5),
    (["--session-ttl", "0"], "session_ttl", 0.0),
    (["--max-inflight", "7"], "max_inflight", 7),
    (["--max-envs", "9"], "max_envs", 9),
    (["--max-meta", "4096"], "max_meta", 4096),
    (["--tracebacks"], "tracebacks", True),
    (["--no-tracebacks"], "tracebacks", False),
]


@pytest.mark.parametrize(("words", "name", "given"), OPTIONS)
def test_an_option_reaches_the_server_and_changes_nothing_else(arguments_of, words, name, given):
    arguments = arguments_of("CartPole-v1", *words)
    assert arguments.pop(name) == given
    plain = arguments_of("CartPole-v1")
    del plain[name]
    assert arguments == plain


def test_every_option_that_there_is_has_been_tried():
    said = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    tried = {word for words, _, _ in OPTIONS for word in words}
    assert set(re.findall(r"--[a-z][a-z-]+", said)) - {"--help"} <= tried


def test_the_token_of_the_environment_is_used_where_there_is_no_file(arguments_of, monkeypatch):
    monkeypatch.setenv("SHOAL_TOKEN", "from outside")
    assert arguments_of("CartPole-v1")["token"] == "from outside"
    assert arguments_of("CartPole-v1", "--token-file", "token")["token"] == "secret"


def test_factories_are_found_by_their_paths_and_named(arguments_of):
    words = ["mine:cell", "Arm=mine:cell", "mine:Shelf.cell", "mine:only", "Pole=CartPole-v1"]
    hosted = arguments_of(*words)["hosted"]
    mine = sys.modules["mine"]
    assert hosted == {
        "cell": mine.cell,
        "Arm": mine.cell,
        "Shelf.cell": mine.cell,
        "only": mine.only,
        "Pole": "CartPole-v1",
    }


# The command itself


@contextmanager
def shoal_serve(folder, *arguments, **options):
    command = [sys.executable, "-c", "from shoal._cli import main; main()", "serve", *arguments]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, **options
    ) as server:
        try:
            yield server
        finally:
            server.kill()  # a test that fails does not wait for it


def told_url(server):
    """Where it says that it listens."""
    return re.search(r"\w+://\S+", server.stderr.readline()).group()


def test_factories_and_ids_are_hosted_until_an_interrupt(folder):
    arguments = ["mine:cell", "Pole=CartPole-v1", "--bind", "tcp://127.0.0.1:0"]
    with shoal_serve(folder, *arguments, "--token-file", "token") as server:
        url = told_url(server)
        for name, size in (("cell", 3), ("Pole", 4)):
            with shoal.connect(f"{url}/{name}", num_envs=2, token="secret") as envs:
                assert envs.reset(seed=1)[0].shape == (2, size)
        with pytest.raises(AuthenticationError):
            shoal.connect(f"{url}/cell", num_envs=2)
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
        assert server.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_closes_what_is_hosted(folder, number):
    (folder / "arm.py").write_text(
        """
from shoal.remote import Hosted
from tests.remote.peers import Cell

class Arm(Cell):
    def close(self):
        open("closed", "a").write("c")

arm = Hosted(Arm, exclusive=True, safe_state=lambda: open("closed", "a").write("s"))
"""
    )
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with shoal_serve(folder, "arm:arm", "--bind", "tcp://127.0.0.1:0", env=here) as server:
        envs = shoal.connect(f"{told_url(server)}/arm")
        envs.reset(seed=0)
        server.send_signal(number)
        assert server.wait(20) == 0
        assert server.stderr.read() == ""
    assert (folder / "closed").read_text() == "sc"
    with pytest.raises(ConnectionLostError, match="the server was closed"):
        envs.step([0, 0, 0])
    envs.close()


def test_places_and_limits_are_kept(folder):
    words = ["CartPole-v1", "--bind", "unix://socket", "--bind", "tcp://127.0.0.1:0"]
    with shoal_serve(folder, *words, "--max-sessions", "1") as server:
        first, second = told_url(server), told_url(server)
        assert first.startswith("unix://")
        with shoal.connect(f"unix://{folder}/socket#CartPole-v1", num_envs=2) as envs:
            envs.reset(seed=0)
            with pytest.raises(RefusedError, match="1 sessions already"):
                shoal.connect(f"{second}/CartPole-v1")
        server.terminate()
        assert server.wait(20) == 0
    assert not (folder / "socket").exists()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate that is its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=me"
    words += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem"
    subprocess.run(["openssl", *words.split()], check=True, cwd=folder, capture_output=True)
    return folder


def test_what_is_hosted_over_tls_is_reached_over_tls(folder, certificates):
    certificate, key = certificates / "certificate.pem", certificates / "key.pem"
    words = ["mine:cell", "--bind", "tls://127.0.0.1:0", "--certificate", certificate, "--key", key]
    with shoal_serve(folder, *words) as server:
        url = told_url(server)
        assert url.startswith("tls://")
        with shoal.connect(f"{url}/cell", num_envs=2, tls=certificate) as envs:
            assert envs.reset(seed=1)[0].shape == (2, 3)
        with pytest.raises(ConnectionLostError, match="certificate"):
            shoal.connect(f"{url}/cell", num_envs=2)
        server.terminate()
        assert server.wait(20) == 0


TLS_WORDS = ["CartPole-v1", "--bind", "tls://127.0.0.1:0"]

MISTAKES = {
    "no module": (["nowhere:cell"], "No module named 'nowhere'"),
    "a module that cannot be imported": (["broken:cell"], "No module named 'nothing_of_this_name'"),
    "no factory": (["mine:nothing"], "no attribute 'nothing'"),
    "no function": (["mine:number"], "expected a function that makes a vector, got 3"),
    "no environment": (["NoSuchEnv-v0"], "NoSuchEnv"),
    "beyond this machine": (
        ["CartPole-v1", "--bind", "tcp://0.0.0.0:0"],
        "can be reached from other machines",
    ),
    "no place": (["CartPole-v1", "--bind", "carrier://pigeon"], "carrier"),
    "a name in the place": (["CartPole-v1", "--bind", "tcp://127.0.0.1:0/it"], "listens for all"),
    "no certificate": (TLS_WORDS, "needs tls"),
    "a key alone": (["CartPole-v1", "--key", "k.pem"], "go together"),
    "an authority alone": (["CartPole-v1", "--authority", "a.pem"], "go together"),
    "no such certificate": (
        [*TLS_WORDS, "--certificate", "no.pem", "--key", "no.pem"],
        "no file no.pem",
    ),
    "an empty token": (["CartPole-v1", "--token-file", "/dev/null"], "would let everybody in"),
    "a name twice": (["A=CartPole-v1", "A=Pendulum-v1"], "the name 'A' is given twice"),
    "no name": (["=CartPole-v1"], "the name '' is empty"),
    "no token file": (["CartPole-v1", "--token-file", "nowhere"], "No such file"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_a_line(folder, mistake):
    arguments, said = MISTAKES[mistake]
    wide = {**os.environ, "COLUMNS": "1000"}
    with shoal_serve(folder, *arguments, env=wide) as server:
        assert server.wait(60) == 1
        told = server.stderr.read()
    line, *places = told.splitlines()
    assert said in line
    assert all(place.startswith("  broken.py:") for place in places)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "hosted"),
        (["CartPole-v1", "--max-sessions", "0"], "--max-sessions"),
        (["CartPole-v1", "--max-inflight", "0"], "--max-inflight"),
        (["CartPole-v1", "--session-ttl", "-1"], "--session-ttl"),
        (["CartPole-v1", "--max-sessions", "many"], "--max-sessions"),
        (["CartPole-v1", "--colour", "red"], "--colour"),
    ],
)
def test_options_that_cannot_be_are_refused_by_their_names(words, said):
    result = CliRunner().invoke(app, ["serve", *words], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert said in re.sub(r"\x1b\[[0-9;]*m", "", result.stderr).lower()
