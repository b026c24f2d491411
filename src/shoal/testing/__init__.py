"""Conformance tests for pools: ours, and yours.

A pool of your own is run through them by a subclass that says how to make it:

.. code-block:: python

    from shoal.testing import PoolConformance

    class TestMyPool(PoolConformance):
        def make_pool(self, num_envs, **options):
            return MyPool("Pick-v1", num_envs, **options)

pytest then finds the tests in the subclass. A pool that takes Python environments subclasses
:class:`PythonPoolConformance`, which asks more of it.
"""

from shoal.testing._identical import assert_identical
from shoal.testing._pool import PoolConformance
from shoal.testing._probe_env import ProbeEnv
from shoal.testing._python_pool import PythonPoolConformance

__all__ = ["PoolConformance", "ProbeEnv", "PythonPoolConformance", "assert_identical"]
