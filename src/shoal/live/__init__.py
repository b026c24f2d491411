"""A page in the browser that shows a vector while it is stepped.

    import shoal, shoal.live

    envs = shoal.make("shoal/HockeyOne-v0", num_envs=64)
    page = shoal.live.show(envs)
    print(page.url)                  # then step the environments as usual

``shoal watch`` and ``shoal train --web`` show the same page.

How it works: docs/internals/live.md.
"""

from shoal.live._live_page import LivePage, show

__all__ = ["LivePage", "show"]
