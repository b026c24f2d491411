"""The RLlib contender of the benchmarks."""

import pytest

pytest.importorskip("ray.rllib")

from benchmarks.contenders.rllib_runners import RllibRunner
from benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("at_random", [False, True])
def test_contender_samples_whole_rollouts(at_random):
    contender = RllibRunner("shoal", "vector_entry_point", is_ours=True, at_random=at_random)
    vector = contender.open(WORKLOADS["cartpole"], 8)
    steps, seconds = vector.step_many(0.001)
    vector.close()
    assert 4000 <= steps < 4008  # PPO's default batch size
    assert seconds > 0
