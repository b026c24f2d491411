"""Playing a vector of ours and one of ale-py's side by side."""

import numpy as np
from ale_py.vector_env import AtariVectorEnv as Reference

from shoal.atari import AtariVectorEnv

OWN_KEYS = {"final_info", "_final_obs", "_final_info"}


def assert_same_infos(got, expected):
    assert got.keys() == expected.keys()
    for key, column in expected.items():
        np.testing.assert_array_equal(got[key], column, err_msg=key)
        assert got[key].dtype == column.dtype, key


def assert_same_step(got, expected):
    """Compare what two vectors return; of final observations, those of rows that have ended."""
    names = ("observations", "rewards", "terminations", "truncations")
    for name, own, other in zip(names, got[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(own, other, err_msg=name)
        assert own.dtype == other.dtype, name
    own_infos = {key: value for key, value in got[4].items() if key not in OWN_KEYS}
    other_infos = dict(expected[4])
    ended = expected[2] | expected[3]
    if "final_obs" in other_infos:
        own_final, other_final = own_infos.pop("final_obs"), other_infos.pop("final_obs")
        # Of a slot that has only lost a life there is no final observation; ale-py's is left over.
        ended &= other_infos["episode_frame_number"] < 40
        np.testing.assert_array_equal(own_final[ended], other_final[ended])
    assert_same_infos(own_infos, other_infos)


def play_both(game, steps, *, num_envs=1, seed=3, num_threads=1, **settings):
    """Play the same actions on both, compare every step, and return how many episodes ended."""
    own = AtariVectorEnv(game, num_envs, num_threads=num_threads, **settings)
    other = Reference(game, num_envs, **settings)
    try:
        assert own.observation_space == other.observation_space
        assert own.action_space == other.action_space
        assert own.metadata["autoreset_mode"] == other.metadata["autoreset_mode"]
        (got, infos), (expected, other_infos) = own.reset(seed=seed), other.reset(seed=seed)
        np.testing.assert_array_equal(got, expected)
        assert_same_infos(infos, other_infos)
        own.action_space.seed(seed)
        ends = 0
        for _ in range(steps):
            actions = own.action_space.sample()
            result = other.step(actions)
            assert_same_step(own.step(actions), result)
            ends += int((result[2] | result[3]).sum())
        return ends
    finally:
        own.close()
        other.close()
