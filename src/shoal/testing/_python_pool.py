"""Conformance tests for pools of Python environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import InvalidActionError
from shoal.pools import Pool
from shoal.testing._identical import assert_identical
from shoal.testing._pool import PoolConformance, _expect
from shoal.testing._probe_env import ProbeEnv
from shoal.vector import VectorEnv

__all__ = ["PythonPoolConformance"]

Factories = Sequence[Callable[[], ProbeEnv]]


class PythonPoolConformance(PoolConformance):
    """Tests of the pool contract that apply to pools of Python environments.

    A subclass defines :meth:`make_python_pool`.
    """

    def make_python_pool(self, factories: Factories, **options: Any) -> Pool:
        """Make the pool under test.

        The options are ``autoreset_mode``, ``copy`` and ``statistics``.
        """
        raise NotImplementedError

    def make_pool(self, num_envs: int, **options: Any) -> Pool:
        """Make a pool of probes."""
        return self.make_python_pool(self.probes(num_envs), **options)

    def probes(self, num_envs: int, **failing: int) -> Factories:
        """Return a function for each slot; with ``slot=2, at=5`` slot 2 fails at step 5."""
        return [
            partial(ProbeEnv, slot, failing["at"] if failing.get("slot") == slot else None)
            for slot in range(num_envs)
        ]

    def test_trajectories_equal_gymnasium(self) -> None:
        for mode in AutoresetMode:
            factories = self.probes(self.num_envs)
            envs = VectorEnv(self.make_python_pool(factories, autoreset_mode=mode))
            reference = gymnasium.vector.SyncVectorEnv(list(factories), autoreset_mode=mode)
            assert_identical(
                envs.reset(seed=3, options={"a": 1}), reference.reset(seed=3, options={"a": 1})
            )
            reference.action_space.seed(5)
            for _ in range(self.steps):
                action = reference.action_space.sample()
                expected = reference.step(action)
                assert_identical(envs.step(action), expected)
                done = expected[2] | expected[3]
                if mode is AutoresetMode.DISABLED and done.any():
                    expected_reset = reference.reset(options={"reset_mask": done.copy()})
                    assert_identical(envs.reset(options={"reset_mask": done}), expected_reset)
            envs.close()
            reference.close()

    def test_invalid_action_steps_no_environment(self) -> None:
        pool = self.started()
        (good,) = self.actions(pool, 1)
        bad = {**good, "move": good["move"].copy()}
        bad["move"][3] = 9
        with _expect.assertRaisesRegex(InvalidActionError, r"slot 3.*\['move'\].*9"):
            pool.send(bad)
        assert pool.call("total_steps") == [0] * self.num_envs
        pool.send(good)
        pool.recv()
        assert pool.call("total_steps") == [1] * self.num_envs
        pool.close()

    def test_an_exception_keeps_its_type_and_names_the_slot(self) -> None:
        pool = self.make_python_pool(self.probes(self.num_envs, slot=2, at=1))
        pool.reset(seeds=range(self.num_envs))
        pool.recv()
        good, bad = self.actions(pool, 2)
        pool.send(good)
        pool.recv()
        pool.send(bad)
        with _expect.assertRaises(ArithmeticError) as caught:
            pool.recv()
        assert "environment 2 fails as asked" in str(caught.exception)
        assert any("slot 2" in note for note in caught.exception.__notes__)
        pool.close()

    def test_a_constructor_that_fails_leaves_nothing_open(self) -> None:
        before = ProbeEnv.open_count

        def broken() -> ProbeEnv:
            raise OSError("no such device")

        factories = [*self.probes(2), broken]
        with _expect.assertRaises(OSError) as caught:
            self.make_python_pool(factories)
        assert any("slot 2" in note for note in caught.exception.__notes__)
        assert ProbeEnv.open_count == before

    def test_close_closes_every_environment(self) -> None:
        before = ProbeEnv.open_count
        self.started().close()
        assert ProbeEnv.open_count == before

    def test_call_reaches_the_chosen_slots(self) -> None:
        pool = self.started()
        assert pool.call("render") == [f"{slot}@0" for slot in range(self.num_envs)]
        assert pool.call("label", slots=[3, 1]) == [3, 1]
        pool.call("set_wrapper_attr", "label", 40, slots=[4])
        assert pool.call("label") == [0, 1, 2, 3, 40]
        pool.close()

    def test_call_takes_functions_to_the_environments(self) -> None:
        pool = self.started()

        def label_times(env: ProbeEnv, factor: int, *, plus: int = 0) -> int:
            return env.label * factor + plus

        assert pool.call(label_times, 10, plus=1, slots=[2, 4]) == [21, 41]
        with _expect.assertRaises(TypeError) as caught:
            pool.call(label_times)
        assert any("'label_times'" in note for note in caught.exception.__notes__)
        assert pool.call("label") == list(range(self.num_envs))
        pool.close()

    def test_statistics_match_the_trajectory(self) -> None:
        pool = self.make_python_pool(self.probes(self.num_envs), statistics=True)
        pool.reset(seeds=range(self.num_envs))
        pool.recv()
        returns = np.zeros(self.num_envs)
        lengths = np.zeros(self.num_envs, np.int64)
        done = np.zeros(self.num_envs, np.bool_)
        num_episodes = 0
        for batch in self.trajectory(pool, self.actions(pool, self.steps)):
            returns = np.where(done, 0.0, returns + batch.rewards)
            lengths = np.where(done, 0, lengths + 1)
            done = batch.terminated | batch.truncated
            episodes = None if batch.raw_infos is None else batch.raw_infos[1]
            assert (episodes is not None) == done.any()
            if episodes is not None:
                mask, reported_returns, reported_lengths, seconds = episodes
                assert_identical(mask, done)
                assert_identical(reported_returns, np.where(done, returns, 0.0))
                assert_identical(reported_lengths, np.where(done, lengths, 0))
                assert (seconds[done] >= 0).all()
                num_episodes += int(done.sum())
        assert num_episodes > 0
        pool.close()
