"""The process pool, its workers, and the messages between them.

How it works: docs/internals/supervision.md.
"""

from shoal.pools._processes.pool import ProcessPool, isolated_pool, lenient_pool

__all__ = ["ProcessPool", "isolated_pool", "lenient_pool"]
