"""Compare the results of Shoal's and ale-py's Atari vectors for the same actions."""

from collections.abc import Sequence

import numpy as np
from ale_py.vector_env import AtariVectorEnv as AleVectorEnv
from gymnasium.vector import AutoresetMode

from shoal.atari import AtariVectorEnv

SHOAL_ONLY_INFOS = {"final_info", "_final_obs", "_final_info"}


def assert_same_infos(got, expected):
    assert got.keys() == expected.keys()
    for key, column in expected.items():
        np.testing.assert_array_equal(got[key], column, err_msg=key)
        assert got[key].dtype == column.dtype, key


def assert_same_reset(got, expected):
    np.testing.assert_array_equal(got[0], expected[0], err_msg="observations")
    assert got[0].dtype == expected[0].dtype
    assert_same_infos(got[1], expected[1])


def assert_same_step(got, expected, *, life_loss_info=False):
    """Compare two step results; final observations only in rows where an episode has ended.

    With ``life_loss_info``, a slot that lost a life is terminated without a final observation;
    ale-py leaves an old one in that row. Such slots are recognised by their frame count.
    """
    names = ("observations", "rewards", "terminations", "truncations")
    for name, own, other in zip(names, got[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(own, other, err_msg=name)
        assert own.dtype == other.dtype, name
    own_infos = {key: value for key, value in got[4].items() if key not in SHOAL_ONLY_INFOS}
    other_infos = dict(expected[4])
    if "final_obs" in other_infos:
        own_final, other_final = own_infos.pop("final_obs"), other_infos.pop("final_obs")
        rows = expected[2] | expected[3]
        if life_loss_info:
            rows &= other_infos["episode_frame_number"] < 40
        np.testing.assert_array_equal(own_final[rows], other_final[rows], err_msg="final_obs")
    assert_same_infos(own_infos, other_infos)


def play_both(
    game: str,
    steps: int,
    *,
    num_envs: int = 1,
    seeds: Sequence[int] = (3,),
    num_threads: int = 1,
    **settings,
) -> int:
    """Take the same actions in both vectors, and compare every reset and step.

    For each seed: a seeded reset and ``steps`` steps, then a reset without a seed and a reset of
    the first slot only, each followed by a quarter as many steps.

    Returns:
        The number of episodes that ended.
    """
    own = AtariVectorEnv(game, num_envs, num_threads=num_threads, **settings)
    other = AleVectorEnv(game, num_envs, **settings)
    first_only = {"reset_mask": np.arange(num_envs) == 0}
    ends = 0

    def play(count: int) -> None:
        nonlocal ends
        for _ in range(count):
            actions = own.action_space.sample()
            result = other.step(actions)
            assert_same_step(
                own.step(actions), result, life_loss_info=settings.get("life_loss_info", False)
            )
            ends += int((result[2] | result[3]).sum())

    try:
        assert own.observation_space == other.observation_space
        assert own.action_space == other.action_space
        assert AutoresetMode(own.metadata["autoreset_mode"]) == other.metadata["autoreset_mode"]
        for seed in seeds:
            own.action_space.seed(seed)
            assert_same_reset(own.reset(seed=seed), other.reset(seed=seed))
            play(steps)
            assert_same_reset(own.reset(), other.reset())
            play(steps // 4)
            assert_same_reset(own.reset(options=first_only), other.reset(options=first_only))
            play(steps // 4)
        return ends
    finally:
        own.close()
        other.close()
