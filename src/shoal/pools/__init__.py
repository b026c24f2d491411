"""Pools: runners plus what drives them, all behind one contract."""

from shoal.pools.base import Batch, Pool
from shoal.pools.inline import InlinePool
from shoal.pools.kernel import KernelPool
from shoal.pools.processes import ProcessPool
from shoal.pools.threads import ThreadPool

__all__ = ["Batch", "InlinePool", "KernelPool", "Pool", "ProcessPool", "ThreadPool"]
