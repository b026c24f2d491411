"""A Ray pool keeps the contract, and does what every other pool does from the same seeds."""

import pytest

from shoal.testing import PythonPoolConformance
from tests.pools.ray.pools import ray_pool

pytestmark = pytest.mark.usefixtures("ray_here")


class TestTwoActors(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        ray_options = {"copy": options.pop("copy", True)}
        count = len(factories)
        return ray_pool(
            factories, [count // 2, count - count // 2], ray_options=ray_options, **options
        )
