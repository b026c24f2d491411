"""The inline pool passes the conformance tests."""

from shoal.pools import InlinePool
from shoal.testing import PythonPoolConformance


class TestInlinePool(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        return InlinePool(factories, **options)
