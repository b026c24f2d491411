"""Exceptions of environments keep type, traceback and slot; messages may be large or unusual."""

import threading
from functools import partial

import gymnasium
import numpy as np
import pytest

from shoal.errors import RemoteError
from shoal.pools import ProcessPool
from tests.faulty import FaultyEnv, OddError, fault
from tests.random_environments import RandomEnv, WordSpace

NOTHING = fault("nothing")


def actions(slot, name, count=4):
    """Return the action of this name for one slot, and "nothing" for the others."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def started(count=4, **options):
    options = {"caller_works": False, "workers": 2, **options}
    pool = ProcessPool([partial(FaultyEnv, label) for label in range(count)], **options)
    pool.reset(seeds=range(count))
    pool.recv()
    return pool


class TestExceptions:
    def test_keep_their_type_traceback_and_slot(self):
        pool = started()
        with pytest.raises(ArithmeticError, match="2 fails as asked") as info:
            pool.step(actions(2, "raise"))
        assert any("slot 2 of 4" in note for note in info.value.__notes__)
        assert "in step" in str(info.value.__cause__)
        assert "raise ArithmeticError" in str(info.value.__cause__)
        # Every other slot was stepped, and the pool stays usable.
        assert pool.step([NOTHING] * 4)[0][:, 1].tolist() == [2, 2, 2, 2]
        pool.close()

    def test_of_several_slots_are_all_reported(self):
        pool = started()
        with pytest.raises(ArithmeticError, match="1 fails") as info:
            pool.step([NOTHING, fault("raise"), NOTHING, fault("odd error")])
        assert any("slot 3" in note for note in info.value.__notes__)
        assert [slot for slot, _ in pool.errors] == [1, 3]
        pool.close()

    def test_other_slots_can_be_received_after_a_failure(self):
        pool = started()
        pool.send(actions(1, "raise"))
        with pytest.raises(ArithmeticError):
            pool.recv()
        assert pool.recv().slots.tolist() == [0, 2, 3]
        pool.close()

    def test_with_a_constructor_that_does_not_accept_its_args(self):
        pool = started()
        with pytest.raises(OddError, match="code 3: 0 is odd") as info:
            pool.step(actions(0, "odd error"))
        assert info.value.code == 3
        pool.close()

    def test_that_cannot_be_pickled(self):
        pool = started()
        with pytest.raises(LookupError, match="1 holds a lock") as info:
            pool.step(actions(1, "unpicklable error"))
        assert isinstance(info.value, RemoteError)
        assert type(info.value).__name__ == "UnpicklableError"
        assert "holds a lock" in str(info.value.__cause__)
        pool.close()

    def test_system_exit_does_not_end_the_caller(self):
        pool = started()
        with pytest.raises(RemoteError) as info:
            pool.step(actions(1, "system exit"))
        assert type(info.value).__name__ == "SystemExit"
        assert not isinstance(info.value, SystemExit)
        pool.close()

    @pytest.mark.parametrize(
        "result", [5, "text", type("Spaceless", (gymnasium.Env,), {})], ids=["int", "text", "bare"]
    )
    def test_of_objects_that_are_no_environments(self, result):
        factory = result if isinstance(result, type) else lambda: result
        with pytest.raises(AttributeError, match="observation_space") as info:
            ProcessPool([factory] * 2, workers=1, caller_works=False)
        assert any("slot 0 of 2" in note for note in info.value.__notes__)

    def test_of_an_info_that_cannot_be_pickled(self):
        pool = started()
        with pytest.raises(TypeError, match="cannot pickle") as info:
            pool.step(actions(2, "unpicklable info"))
        assert any("slot 2, in its info" in note for note in info.value.__notes__)
        pool.close()

    @pytest.mark.parametrize("caller_works", [True, False])
    @pytest.mark.parametrize("where", ["init", "reset", "step", "render", "close"])
    @pytest.mark.parametrize("slot", [0, 3])
    def test_in_any_method(self, where, slot, caller_works):
        factories = [
            partial(FaultyEnv, label, where if label == slot else None) for label in range(4)
        ]

        def use_pool():
            pool = ProcessPool(factories, workers=2, caller_works=caller_works, start="fork")
            try:
                pool.reset()
                pool.recv()
                pool.step([NOTHING] * 4)
                pool.call("render")
            finally:
                pool.close()

        with pytest.raises(ArithmeticError, match=f"{slot} fails in {where}") as info:
            use_pool()
        assert any(f"slot {slot} of 4" in note for note in info.value.__notes__)

    def test_in_a_call(self):
        pool = started()
        with pytest.raises(AttributeError) as info:
            pool.call("no_such_thing")
        assert any("slot 0 of 4" in note for note in info.value.__notes__)
        assert pool.call("label", slots=[3, 0]) == [3, 0]
        pool.close()


class TestSideEffects:
    """Environments may print, fork, start threads, and return large infos."""

    @pytest.mark.parametrize("action", ["print", "fork", "thread"])
    def test_are_allowed(self, action, capfd):
        pool = started()
        for _ in range(3):
            pool.step(actions(1, action))
        pool.close()
        output = capfd.readouterr()
        assert output.out == ("a word from 1\n" * 3 if action == "print" else "")

    def test_infos_may_be_larger_than_a_socket_buffer(self):
        pool = started()
        for _ in range(3):
            *_, infos = pool.step([fault("big info")] * 4)
            assert [info["data"][5] for _, info in infos[0]] == [0, 1, 2, 3]
        pool.send([fault("big info")] * 4)
        pool.call("set_wrapper_attr", "label", np.zeros(500_000))  # large in both directions
        pool.recv()
        pool.close()


class TestRefusedMessages:
    """A message that cannot be pickled is refused, and the pool is unchanged."""

    def test_options_of_a_reset(self):
        pool = started()
        with pytest.raises(TypeError, match="pickle"):
            pool.reset(options={"lock": threading.Lock()})
        assert pool.in_flight == 0
        assert pool.step([NOTHING] * 4)[0][:, 1].tolist() == [1] * 4
        pool.close()

    def test_actions(self):
        space = gymnasium.spaces.Tuple((WordSpace(), gymnasium.spaces.Discrete(2)))
        env = partial(RandomEnv, gymnasium.spaces.Discrete(3), space)
        pool = ProcessPool([env] * 4, workers=2, caller_works=False)
        pool.reset(seeds=range(4))
        pool.recv()
        bad = (["word-1", "word-2", threading.Lock(), "word-3"], np.zeros(4, np.int64))
        good = (["word-1"] * 4, np.zeros(4, np.int64))
        for use in (pool.send, pool.step):
            with pytest.raises(TypeError, match="pickle"):
                use(bad)
            assert pool.in_flight == 0
            pool.step(good)
        pool.close()

    def test_arguments_of_a_call(self):
        pool = started()
        with pytest.raises(TypeError, match="pickle"):
            pool.call("set_wrapper_attr", "label", threading.Lock())
        assert pool.call("label") == [0, 1, 2, 3]
        pool.close()
