"""``shoal serve`` passes its options to ``shoal.serve`` and hosts the named environments."""

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

class Container:
    cell = staticmethod(cell)

only = Hosted(cell, exclusive=True)
number = 3
"""


@pytest.fixture
def folder(tmp_path):
    """The folder in which the command runs."""
    (tmp_path / "mine.py").write_text(CELL)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    (tmp_path / "token").write_text("  secret\n")
    return tmp_path


# Arguments passed to shoal.serve


class FakeServer:
    """A server whose ``wait`` returns immediately."""

    urls = ("tcp://one:1", "unix:///two")
    names = ("first", "second")
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
    """Runs the command, and returns the arguments that it passed to ``shoal.serve``."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.delenv("SHOAL_TOKEN", raising=False)
    signature = inspect.signature(shoal.serve)
    calls = []

    def serve(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        calls.append((bound.arguments, FakeServer()))
        return calls[-1][1]

    monkeypatch.setattr(shoal, "serve", serve)

    def arguments_of(*words):
        result = CliRunner().invoke(app, ["serve", *words])
        assert result.exit_code == 0, result.output
        arguments, server = calls.pop()
        assert (server.waited, server.closed, calls) == (1, 1, [])
        assert result.stderr.splitlines() == [
            f"Listening on {url} for first, second" for url in server.urls
        ]
        return arguments

    return arguments_of


def test_without_options_the_defaults_of_shoal_serve_apply(arguments_of):
    arguments = arguments_of("CartPole-v1")
    assert arguments.pop("hosted") == {"CartPole-v1": "CartPole-v1"}
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(shoal.remote.serve).parameters.items()
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


@pytest.mark.parametrize(("words", "name", "expected"), OPTIONS)
def test_each_option_sets_one_argument_and_no_other(arguments_of, words, name, expected):
    arguments = arguments_of("CartPole-v1", *words)
    assert arguments.pop(name) == expected
    defaults = arguments_of("CartPole-v1")
    del defaults[name]
    assert arguments == defaults


def test_every_option_is_covered_by_these_tests():
    text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    covered = {word for words, _, _ in OPTIONS for word in words}
    assert set(re.findall(r"--[a-z][a-z-]+", text)) - {"--help"} <= covered


def test_the_token_file_takes_precedence_over_the_environment_variable(arguments_of, monkeypatch):
    monkeypatch.setenv("SHOAL_TOKEN", "from the variable")
    assert arguments_of("CartPole-v1")["token"] == "from the variable"
    assert arguments_of("CartPole-v1", "--token-file", "token")["token"] == "secret"


def test_factories_are_loaded_and_named_after_their_path_by_default(arguments_of):
    words = ["mine:cell", "Arm=mine:cell", "mine:Container.cell", "mine:only", "Pole=CartPole-v1"]
    hosted = arguments_of(*words)["hosted"]
    mine = sys.modules["mine"]
    assert hosted == {
        "cell": mine.cell,
        "Arm": mine.cell,
        "Container.cell": mine.cell,
        "only": mine.only,
        "Pole": "CartPole-v1",
    }


# The command in a process


@contextmanager
def shoal_serve(folder, *arguments, **options):
    command = [sys.executable, "-c", "from shoal._cli import main; main()", "serve", *arguments]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, **options
    ) as server:
        try:
            yield server
        finally:
            server.kill()  # so that a failing test does not wait for it


def read_url(server):
    """Return the URL in the next line that the server prints."""
    return re.search(r"\w+://\S+", server.stderr.readline()).group()


def test_factories_and_ids_are_hosted_until_sigint(folder):
    arguments = ["mine:cell", "Pole=CartPole-v1", "--bind", "tcp://127.0.0.1:0"]
    with shoal_serve(folder, *arguments, "--token-file", "token") as server:
        url = read_url(server)
        for name, size in (("cell", 3), ("Pole", 4)):
            with shoal.connect(f"{url}/{name}", num_envs=2, token="secret") as envs:
                assert envs.reset(seed=1)[0].shape == (2, size)
        with pytest.raises(AuthenticationError):
            shoal.connect(f"{url}/cell", num_envs=2)
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
        assert server.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_close_the_hosted_environments(folder, number):
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
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with shoal_serve(folder, "arm:arm", "--bind", "tcp://127.0.0.1:0", env=environment) as server:
        envs = shoal.connect(f"{read_url(server)}/arm")
        envs.reset(seed=0)
        server.send_signal(number)
        assert server.wait(20) == 0
        assert server.stderr.read() == ""
    assert (folder / "closed").read_text() == "sc"
    with pytest.raises(ConnectionLostError, match="the server was closed"):
        envs.step([0, 0, 0])
    envs.close()


def test_several_addresses_and_max_sessions(folder):
    words = ["CartPole-v1", "--bind", "unix://socket", "--bind", "tcp://127.0.0.1:0"]
    with shoal_serve(folder, *words, "--max-sessions", "1") as server:
        first, second = read_url(server), read_url(server)
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
    """A self-signed certificate."""
    folder = tmp_path_factory.mktemp("certificates")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=me"
    words += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem"
    subprocess.run(["openssl", *words.split()], check=True, cwd=folder, capture_output=True)
    return folder


def test_serving_over_tls(folder, certificates):
    certificate, key = certificates / "certificate.pem", certificates / "key.pem"
    words = ["mine:cell", "--bind", "tls://127.0.0.1:0", "--certificate", certificate, "--key", key]
    with shoal_serve(folder, *words) as server:
        url = read_url(server)
        assert url.startswith("tls://")
        with shoal.connect(f"{url}/cell", num_envs=2, tls=certificate) as envs:
            assert envs.reset(seed=1)[0].shape == (2, 3)
        with pytest.raises(ConnectionLostError, match="certificate"):
            shoal.connect(f"{url}/cell", num_envs=2)
        server.terminate()
        assert server.wait(20) == 0


TLS_WORDS = ["CartPole-v1", "--bind", "tls://127.0.0.1:0"]

ERRORS = {
    "unknown module": (["nowhere:cell"], "No module named 'nowhere'"),
    "module that cannot be imported": (["broken:cell"], "No module named 'nothing_of_this_name'"),
    "unknown factory": (["mine:nothing"], "no attribute 'nothing'"),
    "not a function": (["mine:number"], "expected a function that makes a vector, got 3"),
    "unknown environment": (["NoSuchEnv-v0"], "NoSuchEnv"),
    "public address without token": (
        ["CartPole-v1", "--bind", "tcp://0.0.0.0:0"],
        "can be reached from other machines",
    ),
    "unknown scheme": (["CartPole-v1", "--bind", "carrier://pigeon"], "carrier"),
    "name in the address": (["CartPole-v1", "--bind", "tcp://127.0.0.1:0/it"], "listens for all"),
    "no certificate": (TLS_WORDS, "needs tls"),
    "key without certificate": (["CartPole-v1", "--key", "k.pem"], "must be given together"),
    "authority alone": (["CartPole-v1", "--authority", "a.pem"], "must be given together"),
    "missing certificate file": (
        [*TLS_WORDS, "--certificate", "no.pem", "--key", "no.pem"],
        "no file no.pem",
    ),
    "empty token": (["CartPole-v1", "--token-file", "/dev/null"], "token file /dev/null is empty"),
    "duplicate name": (["A=CartPole-v1", "A=Pendulum-v1"], "the name 'A' is used twice"),
    "empty name": (["=CartPole-v1"], "the name '' is empty"),
    "missing token file": (["CartPole-v1", "--token-file", "nowhere"], "No such file"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_printed_in_one_line(folder, error):
    arguments, expected = ERRORS[error]
    wide = {**os.environ, "COLUMNS": "1000"}
    with shoal_serve(folder, *arguments, env=wide) as server:
        assert server.wait(60) == 1
        output = server.stderr.read()
    line, *places = output.splitlines()
    assert expected in line
    assert all(place.startswith("  broken.py:") for place in places)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "hosted"),
        (["CartPole-v1", "--max-sessions", "0"], "--max-sessions"),
        (["CartPole-v1", "--max-inflight", "0"], "--max-inflight"),
        (["CartPole-v1", "--session-ttl", "-1"], "--session-ttl"),
        (["CartPole-v1", "--max-sessions", "many"], "--max-sessions"),
        (["CartPole-v1", "--colour", "red"], "--colour"),
    ],
)
def test_usage_errors_name_the_option(words, expected):
    result = CliRunner().invoke(app, ["serve", *words], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert expected in re.sub(r"\x1b\[[0-9;]*m", "", result.stderr).lower()
