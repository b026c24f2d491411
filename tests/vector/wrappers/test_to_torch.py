"""The ToTorch wrapper."""

import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import InvalidActionError, MissingExtraError
from shoal.testing import ProbeEnv, assert_identical
from shoal.vector.wrappers import NormalizeObservation
from tests.random_environments import RandomEnv
from tests.vector.wrappers.playing import PARTS, factory_of, random_env

torch = pytest.importorskip("torch")

from shoal._wrapper_core import tensors  # noqa: E402
from shoal.wrappers import ToTorch  # noqa: E402


def as_numpy(value):
    """Convert tensors to arrays, and assert that there are no numeric arrays."""
    if isinstance(value, torch.Tensor):
        return value.numpy(force=True)
    if isinstance(value, dict):
        return {key: as_numpy(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(as_numpy, value))
    assert not isinstance(value, np.ndarray) or value.dtype == object
    return value


SOURCES = {
    "kernel": partial(shoal.make, "CartPole-v1", 3),
    "inline": partial(shoal.make, [random_env(PARTS)] * 3, backend="inline"),
    "processes": partial(shoal.make, [random_env(PARTS)] * 3, backend="process", start="fork"),
    "gymnasium": partial(gymnasium.vector.SyncVectorEnv, [factory_of("CartPole-v1")] * 3),
}


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("source", SOURCES)
def test_results_are_tensors(source, mode):
    envs, plain = (SOURCES[source](autoreset_mode=mode) for _ in range(2))
    kept, expected = [], [plain.reset(seed=1)]
    with ToTorch(envs) as envs:
        kept.append(envs.reset(seed=1))
        for step in range(30):
            action = np.arange(3) % 2 if step % 2 else np.zeros(3, np.int64)
            kept.append(envs.step(torch.tensor(action)))
            expected.append(plain.step(action))
            mask = expected[-1][2] | expected[-1][3]
            if mode is AutoresetMode.DISABLED and mask.any():
                kept.append(envs.reset(options={"reset_mask": torch.tensor(mask)}))
                expected.append(plain.reset(options={"reset_mask": mask}))
    # Compared at the end, to detect memory that is overwritten.
    for (*results, infos), (*wanted, wanted_infos) in zip(kept, expected, strict=True):
        assert_identical(as_numpy(tuple(results)), tuple(wanted))
        assert_identical(infos, wanted_infos)
    plain.close()


def test_cpu_tensors_share_memory(monkeypatch):
    with ToTorch(shoal.make("CartPole-v1", 2)) as envs:
        arrays, step = [], envs.env.step
        monkeypatch.setattr(
            envs.env, "step", lambda actions: arrays.append(step(actions)) or arrays[-1]
        )
        envs.reset()
        actions = torch.tensor([0, 1])
        results = envs.step(actions)
        for tensor, array in zip(results[:4], arrays[0][:4], strict=True):
            assert np.shares_memory(tensor.numpy(), array)


def test_nested_actions():
    with ToTorch(shoal.make([ProbeEnv] * 2, backend="inline")) as envs:
        plain = shoal.make([ProbeEnv] * 2, backend="inline")
        action = {"move": torch.tensor([1, -2]), "push": torch.ones(2, 2, requires_grad=True)}
        results = []
        for vector in (envs, plain):
            vector.reset(seed=1)
            push = np.ones((2, 2))
            given = {"move": np.array([1, -2]), "push": push} if vector is plain else action
            given["push"] = push if vector is plain else given["push"].double()
            results.append(vector.step(given))
        observations = results[0][0]
        assert observations["word"] == ("t1", "t1")  # not numeric, so unchanged
        assert_identical(as_numpy(results[0][:4]), results[1][:4])
        plain.close()


def test_send_and_recv():
    with ToTorch(shoal.make("CartPole-v1", 4)) as envs, shoal.make("CartPole-v1", 4) as plain:
        envs.reset(seed=1)
        plain.reset(seed=1)
        for slots in ([2, 0], [1, 3], [3, 2]):
            envs.send(torch.tensor([0, 1]), torch.tensor(slots))
            plain.send([0, 1], slots)
            batch, expected = envs.recv(slots=slots), plain.recv(slots=slots)
            assert batch.slots.tolist() == slots
            assert_identical(as_numpy(tuple(batch[1:5])), tuple(expected[1:5]))
        envs.send(torch.zeros(4, dtype=torch.int64))
        assert isinstance(envs.recv(min_slots=1, timeout=5).rewards, torch.Tensor)


def test_errors_of_send_recv_and_step():
    with ToTorch(gymnasium.vector.SyncVectorEnv([factory_of("CartPole-v1")])) as envs:
        with pytest.raises(AttributeError, match="has no method 'send'"):
            envs.send(torch.tensor([0]))
        with pytest.raises(AttributeError, match="has no method 'recv'"):
            envs.recv()
    with ToTorch(shoal.make("CartPole-v1", 2)) as envs:
        envs.reset()
        with pytest.raises(InvalidActionError):
            envs.step(torch.tensor([0, 5]))


def test_around_other_wrappers():
    vector = NormalizeObservation(shoal.make("Pendulum-v1", 3, autoreset_mode="SameStep"))
    with ToTorch(vector, device="cpu") as envs:
        envs.reset(seed=1)
        observations, *_ = envs.step(torch.zeros(3, 1))
        assert observations.dtype == torch.float32
        assert envs.single_action_space == vector.single_action_space
        assert envs.get_attr("g") == vector.get_attr("g")
    assert vector.closed


@pytest.mark.parametrize("info_format", ["dict", "list"])
def test_infos_are_converted_on_request(info_format):
    try:
        import gymnasium.wrappers.array_conversion  # noqa: F401
    except DependencyNotInstalled as error:  # NumPy may be too old
        pytest.skip(str(error))
    vector = shoal.make(
        [partial(RandomEnv, PARTS, spaces.Discrete(3))] * 3,
        backend="inline",
        autoreset_mode="SameStep",
        info_format=info_format,
    )
    with ToTorch(vector, infos=True) as envs:
        envs.reset(seed=1)
        numbers = finals = 0
        for _ in range(30):
            *_, infos = envs.step(torch.tensor([0, 1, 2]))
            for info in infos if info_format == "list" else [infos]:
                numbers += isinstance(info.get("float"), torch.Tensor)
                final = info.get("final_obs")
                if final is not None:
                    final = final if info_format == "list" else next(filter(None, final))
                    finals += isinstance(final["b"], torch.Tensor)
        assert numbers > 5
        assert finals > 5


def test_error_names_the_missing_library(monkeypatch):
    monkeypatch.delitem(sys.modules, "shoal._wrapper_core.tensors")
    monkeypatch.delattr("shoal._wrapper_core.tensors")
    monkeypatch.setitem(sys.modules, "torch", None)
    envs = shoal.make("CartPole-v1", 2)
    with envs, pytest.raises(MissingExtraError, match="pip install torch"):
        ToTorch(envs)


class TestLoading:
    """Conversion to tensors, including devices that this machine does not have."""

    @pytest.mark.parametrize("array", [np.arange(6)[::-1], np.broadcast_to(np.arange(3), (2, 3))])
    def test_unsupported_memory_is_copied(self, array, recwarn):
        assert torch.equal(tensors.tensor_loader()(array), torch.tensor(array.copy()))
        assert not recwarn

    def test_named_tuples_and_non_numeric_values_are_kept(self):
        graph = spaces.Graph(spaces.Box(-1, 1, (2,)), None).sample()
        words = np.array(["a", None], object)
        loaded = tensors.tensor_loader()({"graph": (graph,), "words": words, "kind": ("a", "b")})
        assert type(loaded["graph"][0]) is type(graph)
        assert isinstance(loaded["graph"][0].nodes, torch.Tensor)
        assert loaded["words"] is words
        assert loaded["kind"] == ("a", "b")

    def test_other_devices(self):
        loaded = tensors.tensor_loader("meta")({"a": np.zeros((2, 3))})
        assert loaded["a"].device.type == "meta"
        assert loaded["a"].shape == (2, 3)

    @pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
    def test_cuda_uses_pinned_memory(self, device):
        assert isinstance(tensors.tensor_loader(device), tensors.PinnedLoader)

    @pytest.fixture
    def calls(self, monkeypatch):
        """Record the calls of CUDA, with the CPU as the device."""
        calls = []

        class Event:
            def __init__(self):
                self.number = sum(call[0] == "record" for call in calls)

            def record(self, stream):
                calls.append(("record", self.number, stream))

            def synchronize(self):
                calls.append(("wait", self.number))

        empty = torch.empty

        def pinned(*args, pin_memory=False, **kwargs):
            calls.append(("pin", tuple(args[0]), pin_memory))
            return empty(*args, **kwargs)

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
        monkeypatch.setattr(torch, "empty", pinned)
        return calls

    def test_two_batches_are_copied_concurrently(self, calls):
        loader = tensors.PinnedLoader(torch.device("cpu"))
        kept = []
        for number in range(4):
            array = np.full((2, 3), number)
            kept.append(loader((array, {"flags": np.full(2, number % 2 == 0)})))
            array[:] = 99  # the caller may overwrite the array at once
        for number, (tensor, parts) in enumerate(kept):
            assert torch.equal(tensor, torch.full((2, 3), number))
            assert parts["flags"].tolist() == [number % 2 == 0] * 2
        pins = [("pin", (2, 3), True), ("pin", (2,), True)]
        assert calls == [
            *pins,
            ("record", 0, "stream of cpu"),
            *pins,
            ("record", 1, "stream of cpu"),
            ("wait", 0),  # before the memory is reused
            ("record", 2, "stream of cpu"),
            ("wait", 1),
            ("record", 3, "stream of cpu"),
        ]

    def test_batches_of_another_shape(self, calls):
        loader = tensors.PinnedLoader(torch.device("cpu"))
        for shape in [(2,), (2,), (3,), (2,)]:
            assert torch.equal(loader(np.ones(shape)), torch.ones(shape, dtype=torch.float64))
        assert [call[1] for call in calls if call[0] == "pin"] == [(2,), (2,), (3,)]

    def test_copies_are_recorded_after_a_failure(self, calls):
        loader = tensors.PinnedLoader(torch.device("cpu"))
        with pytest.raises(TypeError):
            loader((np.ones(2), np.ones(2, np.longdouble)))
        assert calls[-1] == ("record", 0, "stream of cpu")

    def test_copies_are_asynchronous(self, calls, monkeypatch):
        calls = []
        to = torch.Tensor.to
        monkeypatch.setattr(
            torch.Tensor,
            "to",
            lambda self, *args, **kw: calls.append((args, kw)) or to(self, *args, **kw),
        )
        tensors.PinnedLoader(torch.device("cpu"))(np.ones(2))
        assert calls == [((torch.device("cpu"),), {"non_blocking": True, "copy": True})]
