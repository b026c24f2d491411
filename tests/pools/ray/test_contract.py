"""The conformance tests of pools, for the Ray pool."""

import pytest

from shoal.testing import PythonPoolConformance
from tests.pools.ray.pools import ray_pool

pytestmark = pytest.mark.usefixtures("ray_here")

FAST_TESTS = {
    "test_trajectories_equal_gymnasium",
    "test_slots_stepped_alone_do_as_they_do_together",
    "test_a_step_in_two_halves_is_a_step",
    "test_a_slot_in_flight_is_not_sent_again",
    "test_a_finished_slot_is_refused_when_autoreset_is_disabled",
    "test_an_exception_keeps_its_type_and_names_the_slot",
}


class _TwoActors(PythonPoolConformance):
    def make_python_pool(self, factories, **options):
        ray_options = {"copy": options.pop("copy", True)}
        half = len(factories) // 2
        counts = [half, len(factories) - half]
        return ray_pool(factories, counts, ray_options=ray_options, **options)


class TestMainFeatures(_TwoActors):
    """A few tests, since each of them starts two actors, which takes a second of a core each."""

    locals().update(
        dict.fromkeys(
            name
            for name in dir(PythonPoolConformance)
            if name.startswith("test_") and name not in FAST_TESTS
        )
    )


@pytest.mark.slow
class TestAll(_TwoActors):
    """All conformance tests."""
