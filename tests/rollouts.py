"""Comparison of all results of two vectors for the same actions."""

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.testing import assert_identical

ALIKE = (
    "num_envs",
    "observation_space",
    "action_space",
    "single_observation_space",
    "single_action_space",
    "metadata",
    "render_mode",
)


def assert_rollouts_are_equal(ours, theirs, steps, seed, masks=0.1, seen=lambda result: result):
    """Compare two vectors over some steps, from equal seeds.

    Args:
        ours: The first vector.
        theirs: The second vector.
        steps: Number of steps.
        seed: Seed of the resets and of the actions.
        masks: Fraction of steps after which random slots are reset. Without autoreset, finished
            slots are reset after every step instead.
        seen: Removes parts of a result that may differ.
    """
    for name in ALIKE:
        assert getattr(ours, name) == getattr(theirs, name)
    mode = theirs.metadata["autoreset_mode"]
    assert_identical(seen(ours.reset(seed=seed)), seen(theirs.reset(seed=seed)))
    theirs.action_space.seed(seed)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        action = theirs.action_space.sample()
        got, expected = ours.step(action), theirs.step(action)
        assert_identical(seen(got), seen(expected), f"step {step}")
        mask = expected[2] | expected[3]
        if mode is not AutoresetMode.DISABLED:
            mask = rng.random(ours.num_envs) < (0.5 if rng.random() < masks else 0)
        if mask.any():
            got = ours.reset(seed=seed + step, options={"reset_mask": mask.copy()})
            expected = theirs.reset(seed=seed + step, options={"reset_mask": mask.copy()})
            assert_identical(seen(got), seen(expected), f"reset after step {step}")
