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
    """A page that shows a vector.

    Args:
        watcher: The source of the data.
        host: The address to listen on. The token in the link is the page's only protection.
        port: The port; by default 7788, or any free port if that one is in use.

    Raises:
        OSError: The address or the port cannot be used.
    """

    def __init__(self, watcher: Watcher, host: str = "127.0.0.1", port: int | None = None) -> None:
        self.watcher = watcher
        self._server = _opened(watcher, host, port)
        self._detach: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        """The link to the page. Anyone who has the link can open the page."""
        return self._server.url

    def watch(self, vector: Any, picture_share: float = DEFAULT_PICTURE_SHARE) -> None:
        """Show this vector until it or the page is closed.

        Args:
            vector: A vector of Shoal with Gymnasium's or Stable-Baselines3's interface; may be
                wrapped.
            picture_share: The maximum share of the stepping thread's time to spend on rendering
                frames. While the page is not open, no frames are rendered.
        """
        self._detach = attach(self.watcher, vector, picture_share, self._server.stop)

    def close(self) -> None:
        """Close the page. The vector remains usable."""
        self._detach()
        self.watcher.end("page closed")
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
    """Show a vector on a page: frames, speed, the load of workers, episodes and events.

    The vector is stepped by the program as usual. The page closes when the vector is closed.

    Args:
        vector: A vector of Shoal with Gymnasium's or Stable-Baselines3's interface; may be wrapped.
        host: The address to listen on; the default accepts only connections from this machine.
        port: The port; by default 7788, or any free port if that one is in use.
        title: The title of the page; by default the id of the environment.
        picture_share: The maximum share of the stepping thread's time to spend on rendering frames.
            While the page is not open, no frames are rendered.
        refresh: Seconds between updates of the page.

    Raises:
        OSError: The address or the port cannot be used.
        TypeError: The vector is not one of Shoal's.
        ValueError: The vector is already shown on a page.

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
            raise OSError(error.errno, f"port {port} on {host} is already in use") from error
        raise
