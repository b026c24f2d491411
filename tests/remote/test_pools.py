"""Remote pools fulfil the pool contract over every transport and for every hosted pool."""

import pytest

import shoal
from shoal.pools import InlinePool, ThreadPool
from shoal.pools._joined import JoinedPool
from shoal.testing import PoolConformance, PythonPoolConformance
from tests.remote.serving import connected, place


class RemoteConformance(PythonPoolConformance):
    def test_call_takes_functions_to_the_environments(self):
        pool = self.started()
        with pytest.raises(TypeError, match="pass the name"):
            pool.call(lambda env: env.label)
        assert pool.call("label") == list(range(self.num_envs))
        pool.close()


class TestInline(RemoteConformance):
    def make_python_pool(self, factories, **options):
        return connected(lambda: InlinePool(factories, **options), timeout=20.0).pool


class TestThreads(RemoteConformance):
    def make_python_pool(self, factories, **options):
        return connected(lambda: ThreadPool(factories, **options), timeout=20.0).pool


class TestTcp(RemoteConformance):
    def make_python_pool(self, factories, **options):
        made = lambda: InlinePool(factories, **options)  # noqa: E731
        return connected(made, url="tcp://127.0.0.1:0", timeout=20.0).pool


class TestResumable(RemoteConformance):
    def make_python_pool(self, factories, **options):
        made = lambda: InlinePool(factories, **options)  # noqa: E731
        return connected(made, timeout=20.0, on_lost="resume").pool


class TestWebsocket(PoolConformance):
    def make_pool(self, num_envs, **options):
        made = lambda: shoal.make("CartPole-v1", num_envs, **options)  # noqa: E731
        return connected(made, url="ws://127.0.0.1:0", timeout=20.0).pool


class TestKernels(PoolConformance):
    def make_pool(self, num_envs, **options):
        made = lambda: shoal.make("CartPole-v1", num_envs, **options)  # noqa: E731
        return connected(made, timeout=20.0).pool


class TestJoined(PythonPoolConformance):
    """Joined pools fulfil the contract as well."""

    test_a_constructor_that_fails_leaves_nothing_open = None  # not applicable

    def make_python_pool(self, factories, **options):
        options.pop("copy", None)
        return JoinedPool(
            [InlinePool(factories[:2], **options), InlinePool(factories[2:], **options)]
        )


class TestJoinedRemote(RemoteConformance):
    test_a_constructor_that_fails_leaves_nothing_open = None  # not applicable

    def make_python_pool(self, factories, **options):
        parts = [factories[:2], factories[2:]]
        urls = [place(), place()]
        hosts = [
            shoal.serve({"it": lambda part=part: InlinePool(part, **options)}, url)
            for part, url in zip(parts, urls, strict=True)
        ]
        envs = shoal.connect([f"{url}#it" for url in urls], timeout=20.0)
        pool, close = envs.pool, envs.pool.close

        def close_all(**arguments):
            close(**arguments)
            for host in hosts:
                host.close()

        pool.close, pool.vector = close_all, envs
        return pool
