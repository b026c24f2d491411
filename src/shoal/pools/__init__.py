"""Pools: runners, and the workers that drive them, behind one contract.

How it works: docs/internals/workers.md.
"""

from shoal.pools._base import Batch, Pool
from shoal.pools._inline import InlinePool
from shoal.pools._kernel import KernelPool
from shoal.pools._processes import ProcessPool
from shoal.pools._threads import ThreadPool

__all__ = ["Batch", "InlinePool", "KernelPool", "Pool", "ProcessPool", "ThreadPool"]
