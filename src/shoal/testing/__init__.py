"""Conformance tests for pools, including custom ones.

A subclass defines how to make the pool under test:

.. code-block:: python

    from shoal.testing import PoolConformance

    class TestMyPool(PoolConformance):
        def make_pool(self, num_envs, **options):
            return MyPool("Pick-v1", num_envs, **options)

pytest collects the inherited tests. :class:`PythonPoolConformance` has additional tests for pools
of Python environments.
"""

from shoal.testing._identical import assert_identical
from shoal.testing._pool import PoolConformance
from shoal.testing._probe_env import ProbeEnv
from shoal.testing._python_pool import PythonPoolConformance

__all__ = ["PoolConformance", "ProbeEnv", "PythonPoolConformance", "assert_identical"]
