"""Pools: runners plus what drives them, all behind one contract."""

from shoal.pools.base import Batch, Pool
from shoal.pools.inline import InlinePool

__all__ = ["Batch", "InlinePool", "Pool"]
