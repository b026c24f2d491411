"""The process pool, its workers, and the messages between them."""

from shoal.pools._processes.pool import ProcessPool, isolated_pool, lenient_pool

__all__ = ["ProcessPool", "isolated_pool", "lenient_pool"]
