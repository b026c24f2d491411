"""The inline pool keeps the contract."""

from shoal.pools import InlinePool
from shoal.testing import PythonPoolConformance


class TestInlinePool(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return InlinePool(factories, **options)
