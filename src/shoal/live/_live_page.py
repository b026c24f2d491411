"""A page in the browser that shows a vector while it is stepped."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from shoal.live._attach import DEFAULT_PICTURE_SHARE, attach, vector_title
from shoal.live._server import PageServer
from shoal.live._watcher import DEFAULT_REFRESH, Watcher

__all__ = ["LivePage", "show"]

DEFAULT_PORT = 7788


class LivePage:
    """A page, and what it shows.

    Args:
        watcher: What there is to tell.
        host: The address to listen at. The page has no other protection than its link.
        port: The port; by default 7788, or any where that is taken.

    Raises:
        OSError: Nobody can listen there.
    """

    def __init__(self, watcher: Watcher, host: str = "127.0.0.1", port: int | None = None) -> None:
        self.watcher = watcher
        self._server = _opened(watcher, host, port)
        self._detach: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        """The link to the page. Whoever has it may look, and nobody else."""
        return self._server.url

    def watch(self, vector: Any, picture_share: float = DEFAULT_PICTURE_SHARE) -> None:
        """Show this vector, until it is closed or the page is.

        Args:
            vector: One of Shoal's, wrapped or not, by Gymnasium's interface or by
                Stable-Baselines3's.
            picture_share: Which part of the time of the thread that steps goes into pictures at
                the most. Where nobody looks, none does.
        """
        self._detach = attach(self.watcher, vector, picture_share, self._server.stop)

    def close(self) -> None:
        """Take the page away. The vector, if it is open, goes on as if there had been none."""
        self._detach()
        self.watcher.end("no longer shown")
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def show(
    vector: Any,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    title: str | None = None,
    picture_share: float = DEFAULT_PICTURE_SHARE,
    refresh: float = DEFAULT_REFRESH,
) -> LivePage:
    """Show a vector on a page: its environments, how fast it is, who is busy, what happens.

    The vector is stepped as before, by whoever does; the page ends with it.

    Args:
        vector: One of Shoal's, wrapped or not, by Gymnasium's interface or by Stable-Baselines3's.
        host: The address to listen at; by default only this machine can look.
        port: The port; by default 7788, or any where that is taken.
        title: What the page is called; by default after the environment.
        picture_share: Which part of the time of the thread that steps goes into pictures at the
            most. Where nobody looks, none does.
        refresh: Seconds between two states of the page.

    Raises:
        OSError: Nobody can listen at this address.
        TypeError: The vector is none of Shoal's.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=8)
        >>> page = show(envs)
        >>> page.url.startswith("http://127.0.0.1:")
        True
        >>> envs.close()
    """
    page = LivePage(Watcher(title or vector_title(vector), refresh=refresh), host, port)
    try:
        page.watch(vector, picture_share)
    except BaseException:
        page.close()
        raise
    return page


def _opened(watcher: Watcher, host: str, port: int | None) -> PageServer:
    if port is None:
        with suppress(OSError):
            return PageServer(watcher, host, DEFAULT_PORT)
        port = 0
    try:
        return PageServer(watcher, host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, f"port {port} of {host} is taken") from error
        raise
