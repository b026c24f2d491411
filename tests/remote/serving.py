"""Servers and clients for the tests."""

import itertools
from contextlib import contextmanager

import shoal
from shoal.pools import InlinePool
from shoal.remote._server import Server
from shoal.testing import ProbeEnv

TCP = "tcp://127.0.0.1:0"

_PLACES = itertools.count()


class Factory:
    """Makes two environments, and counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return InlinePool([ProbeEnv] * 2)


def place() -> str:
    """Return an unused address within this process."""
    return f"inproc://place-{next(_PLACES)}"


def named(url: str, name: str) -> str:
    """Return the URL of a hosted vector."""
    return f"{url}#{name}" if url.startswith(("unix", "inproc")) else f"{url}/{name}"


@contextmanager
def served(factory, url=None, **options):
    """Host one vector, and yield its URL."""
    with shoal.serve({"it": factory}, url or place(), **options) as server:
        yield named(server.url, "it")


def connected(factory, *, url=None, server=None, **options):
    """Return a client's vector, whose server is closed with it."""
    host: Server = shoal.serve({"it": factory}, url or place(), **(server or {}))
    try:
        envs = shoal.connect(named(host.url, "it"), **options)
    except BaseException:
        host.close()
        raise
    close = envs._pool.close

    def close_both(**arguments):
        close(**arguments)
        host.close()

    envs._pool.close = close_both
    envs._pool.vector = envs  # keeps the vector alive while only the pool is used
    return envs
