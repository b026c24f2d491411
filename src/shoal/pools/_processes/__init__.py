"""The process pool, its workers, and how the two hear of each other."""

from shoal.pools._processes.pool import ProcessPool, isolated_pool, lenient_pool

__all__ = ["ProcessPool", "isolated_pool", "lenient_pool"]
