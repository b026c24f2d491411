"""TLS certificates and handshakes."""

import socket
import subprocess
import time
from contextlib import closing

import pytest

import shoal
from shoal.errors import ConnectionLostError
from tests.remote.serving import Factory, served


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Certificates of an authority, a server and a client, and of a client of another authority."""
    folder = tmp_path_factory.mktemp("certificates")

    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for authority in ("authority", "other_authority"):
        run(
            *("req", "-x509", *new, "-days", "2", "-subj", f"/CN={authority}"),
            *("-keyout", f"{authority}.key", "-out", f"{authority}.pem"),
        )
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name, authority in (
        ("server", "authority"),
        ("client", "authority"),
        ("foreign_client", "other_authority"),
    ):
        run("req", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-days", "2"),
            *("-CAkey", f"{authority}.key", "-CAcreateserial", "-extfile", "names"),
            *("-out", f"{name}.pem"),
        )
    return folder


def files(folder, name, authority=None):
    pair = (folder / f"{name}.pem", folder / f"{name}.key")
    return pair if authority is None else (*pair, folder / f"{authority}.pem")


@pytest.mark.parametrize("scheme", ["tls", "wss"])
def test_server_certificate_is_verified(certificates, scheme):
    factory = Factory()
    with served(factory, f"{scheme}://127.0.0.1:0", tls=files(certificates, "server")) as it:
        with shoal.connect(it, tls=certificates / "authority.pem", timeout=5.0) as envs:
            observations, _ = envs.reset(seed=3)
            assert observations in envs.observation_space
            for _ in range(20):
                envs.step(envs.action_space.sample())
        for tls in (None, certificates / "other_authority.pem"):
            with pytest.raises(ConnectionLostError, match="certificate"):
                shoal.connect(it, tls=tls, timeout=5.0)
        with pytest.raises(ConnectionError):
            shoal.connect(it.replace(scheme, {"tls": "tcp", "wss": "ws"}[scheme]), timeout=1.0)
        assert factory.calls == 1


@pytest.mark.parametrize("scheme", ["tls", "wss"])
def test_client_certificate_is_required(certificates, scheme):
    factory = Factory()
    tls = files(certificates, "server", "authority")
    with served(factory, f"{scheme}://127.0.0.1:0", tls=tls) as it:
        for refused in (
            certificates / "authority.pem",
            files(certificates, "foreign_client", "authority"),
        ):
            with pytest.raises(ConnectionError):
                shoal.connect(it, tls=refused, timeout=5.0)
        assert factory.calls == 0
        mine = files(certificates, "client", "authority")
        with shoal.connect(it, tls=mine, timeout=5.0) as envs:
            envs.reset(seed=0)
        assert factory.calls == 1


@pytest.mark.parametrize(("scheme", "meant"), [("tcp", "tls"), ("ws", "wss")])
def test_tls_argument_selects_encrypted_scheme(certificates, scheme, meant):
    with shoal.serve(
        {"it": Factory()}, f"{scheme}://127.0.0.1:0", tls=files(certificates, "server")
    ) as server:
        assert server.url.startswith(f"{meant}://")
        plain = server.url.replace(meant, scheme)
        with shoal.connect(f"{plain}/it", tls=certificates / "authority.pem", timeout=5.0) as envs:
            assert envs.stats().transport.startswith(f"{meant}://")
        with pytest.raises(ConnectionError):
            shoal.connect(f"{plain}/it", timeout=1.0)


def test_explicit_scheme_is_kept(certificates):
    places = ["tcp://127.0.0.1:0", "tls://127.0.0.1:0"]
    with shoal.serve({"it": Factory()}, places, tls=files(certificates, "server")) as server:
        assert [url.partition(":")[0] for url in server.urls] == ["tcp", "tls"]


def test_tls_argument_without_encryptable_address(certificates, tmp_path):
    with pytest.raises(ValueError, match="does not support encryption"):
        shoal.serve({"it": Factory()}, f"unix://{tmp_path}/it", tls=files(certificates, "server"))


def test_tls_server_requires_a_certificate():
    with pytest.raises(ValueError, match="needs tls"):
        shoal.serve({"it": Factory()}, "tls://127.0.0.1:0")


def test_heartbeat_over_tls(certificates):
    hosted = shoal.remote.Hosted(Factory(), exclusive=True, lease=1.2)
    with served(hosted, "tls://127.0.0.1:0", tls=files(certificates, "server")) as it:
        tls = certificates / "authority.pem"
        with shoal.connect(it, tls=tls, timeout=10.0) as envs:
            envs.reset(seed=0)
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                envs.step(envs.action_space.sample())
            time.sleep(1.8)
            envs.step(envs.action_space.sample())


def test_silent_tls_client_is_closed(certificates):
    with served(Factory(), "tls://127.0.0.1:0", tls=files(certificates, "server")) as it:
        port = int(it.rpartition("/")[0].rpartition(":")[2])
        with (
            closing(socket.create_connection(("127.0.0.1", port))),
            shoal.connect(it, tls=certificates / "authority.pem", timeout=5.0) as envs,
        ):
            envs.reset(seed=0)
