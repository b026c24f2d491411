"""The process pool, its workers, and how the two hear of each other."""

from shoal.pools.processes.pool import ProcessPool

__all__ = ["ProcessPool"]
