"""Watching a vector while it is stepped, on a page in the browser.

    import shoal, shoal.live

    envs = shoal.make("shoal/HockeyOne-v0", num_envs=64)
    page = shoal.live.show(envs)
    print(page.url)                  # and then step the environments as ever

``shoal watch`` and ``shoal train --web`` show the same page.

How it works: docs/internals/live.md.
"""

from shoal.live._live_page import LivePage, show

__all__ = ["LivePage", "show"]
