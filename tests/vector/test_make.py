"""`shoal.make`, and `gymnasium.make_vec` with the mode "shoal"."""

from argparse import Namespace
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation

import shoal
from shoal.errors import NotAnEnvironmentError
from shoal.testing import ProbeEnv


def test_make_from_id():
    with shoal.make("Pendulum-v1", num_envs=2, g=1.62) as envs:
        assert isinstance(envs, gymnasium.vector.VectorEnv)
        assert envs.get_attr("g") == (1.62, 1.62)
        assert envs.spec.id == "Pendulum-v1"
        assert envs.unwrapped is envs
        assert envs.metadata["autoreset_mode"] is envs.autoreset_mode is AutoresetMode.NEXT_STEP
        assert "autoreset_mode" not in gymnasium.make("Pendulum-v1").metadata


def test_make_from_spec():
    spec = gymnasium.spec("Pendulum-v1")
    with shoal.make(spec, num_envs=2) as envs:
        assert envs.num_envs == 2
        assert spec.kwargs == {}


def test_make_from_factory():
    with shoal.make(ProbeEnv, num_envs=2, label=5) as envs:
        assert envs.get_attr("label") == (5, 5)
        assert envs.spec is None
    with shoal.make(ProbeEnv) as envs:
        assert envs.num_envs == 1


def test_make_from_factories():
    with shoal.make([partial(ProbeEnv, slot) for slot in range(3)]) as envs:
        assert envs.get_attr("label") == (0, 1, 2)
        assert envs.call("render") == envs.render() == ("0@0", "1@0", "2@0")


def test_wrappers_are_applied_to_each_environment():
    wrappers = [gymnasium.wrappers.NormalizeReward, gymnasium.wrappers.FlattenObservation]
    with shoal.make("CartPole-v1", num_envs=2, wrappers=wrappers) as envs:
        assert str(envs._pool.envs[0]).startswith("<FlattenObservation<NormalizeReward")


def test_failing_wrapper_leaves_no_environment_open():
    before = ProbeEnv.open_count

    def broken(env):
        raise OSError("broken wrapper")

    with pytest.raises(OSError, match="broken wrapper"):
        shoal.make(ProbeEnv, num_envs=2, wrappers=[broken])
    assert ProbeEnv.open_count == before


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("NoSuchEnv-v0",), {}, gymnasium.error.NameNotFound, "NoSuchEnv"),
        ((ProbeEnv, 0), {}, ValueError, "positive integer, got 0"),
        ((ProbeEnv, 2.5), {}, ValueError, "positive integer, got 2.5"),
        ((ProbeEnv, True), {}, ValueError, "positive integer, got True"),
        (([],), {}, ValueError, "at least one environment"),
        ((7,), {}, TypeError, "got 7"),
        (([ProbeEnv, "CartPole-v1"],), {}, TypeError, "got 'CartPole-v1'"),
        (([ProbeEnv], 2), {}, ValueError, "num_envs is 2, but there are 1"),
        (([ProbeEnv],), {"label": 1}, TypeError, "label"),
        ((ProbeEnv,), {"backend": "gpu"}, ValueError, "backend must be one of"),
        ((ProbeEnv,), {"info_format": "xml"}, ValueError, "info_format must be one of"),
        ((ProbeEnv,), {"seeding": "lucky"}, ValueError, "seeding must be one of"),
        ((ProbeEnv,), {"autoreset_mode": "Never"}, ValueError, "one of .*'SameStep'.* got 'Never'"),
        (
            (ProbeEnv,),
            {"wrappers": FlattenObservation},
            TypeError,
            "a sequence of wrappers, got <class",
        ),
        ((ProbeEnv,), {"wrappers": ["it"]}, TypeError, r"a sequence of wrappers, got \['it'\]"),
        (
            (ProbeEnv,),
            {"backend": "kernel", "seeding": "counter"},
            ValueError,
            "for ProbeEnv, which backend='kernel' and seeding='counter' need: omit them",
        ),
        ((ProbeEnv,), {"observation_mode": "odd"}, ValueError, "Invalid `observation_mode`"),
        ((ProbeEnv,), {"observation_mode": (1, 2)}, TypeError, "got int and int"),
    ],
)
def test_invalid_arguments(arguments, options, error, message):
    before = ProbeEnv.open_count
    with pytest.raises(error, match=message):
        shoal.make(*arguments, **options)
    assert ProbeEnv.open_count == before


class Level(ProbeEnv):
    """Has required arguments."""

    def __init__(self, level, *, size):
        super().__init__()


@pytest.mark.parametrize(
    ("what", "arguments", "error", "hint"),
    [
        (
            ProbeEnv,
            {"num_worker": 2},
            TypeError,
            "num_worker is not an option of shoal.make, so it was passed to ProbeEnv; "
            "did you mean workers?",
        ),
        (
            "CartPole-v1",
            {"hue": 2},
            TypeError,
            "hue is not an option of shoal.make, so it was passed to 'CartPole-v1'",
        ),
        (Level, {}, TypeError, "pass it on: shoal.make(Level, level=...)"),
        (partial(Level), {}, TypeError, "pass it on: shoal.make(Level, level=...)"),
        (Level, {"level": 1}, TypeError, "pass it on: shoal.make(Level, size=...)"),
        (
            "no_such.py:Maze",
            {},
            ImportError,
            "pass the class itself: from no_such import Maze; shoal.make(Maze); only the "
            "command line accepts file.py:Class",
        ),
        (
            "shoal.testing:ProbeEnv",
            {},
            gymnasium.error.NameNotFound,
            "pass the class itself: from shoal.testing import ProbeEnv; shoal.make(ProbeEnv)",
        ),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "process"])
def test_errors_have_hints(what, arguments, error, hint, backend):
    with pytest.raises(error) as info:
        shoal.make(what, num_envs=2, backend=backend, **arguments)
    assert info.value.__notes__[-1] == f"shoal: {hint}"


def test_other_errors_have_no_hints():
    def broken(level=0):
        raise TypeError("f() missing 1 required positional argument: 'level'")

    for what in (broken, "NoSuch-v0", "no_such:NoSuch-v0"):
        with pytest.raises((TypeError, ImportError, gymnasium.error.Error)) as info:
            shoal.make(what)
        assert [*info.value.__notes__] == ["shoal: in slot 0 of 1, building the environment"]


@pytest.mark.parametrize("backend", ["auto", "process"])
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, "returned None, expected an environment: is a `return` missing"),
        (ProbeEnv, r"returned the class ProbeEnv, expected an environment: `ProbeEnv\(\)`"),
        (
            Namespace(metadata={}, step=1),
            "Namespace is no gymnasium.Env: it has no render_mode, ob",
        ),
    ],
)
def test_function_that_returns_no_environment(made, message, backend):
    with pytest.raises(NotAnEnvironmentError, match=message) as info:
        shoal.make(lambda: made, num_envs=2, backend=backend)
    assert any("of 2, building the environment" in note for note in info.value.__notes__)


def test_environment_instead_of_its_class():
    for env, message in (
        (ProbeEnv(), "pass its class, ProbeEnv"),
        (gymnasium.make("CartPole-v1"), "pass its id, 'CartPole-v1'"),
        (FlattenObservation(ProbeEnv()), "pass a function that makes it"),
    ):
        for what in (env, [env, env]):
            with pytest.raises(TypeError, match=message):
                shoal.make(what)
        env.close()


def test_make_vec_accepts_the_shoal_mode_once_patched(patched_gymnasium):
    envs = gymnasium.make_vec(
        "Pendulum-v1",
        num_envs=3,
        vectorization_mode="shoal",
        vector_kwargs={"autoreset_mode": "SameStep", "statistics": True},
        wrappers=[gymnasium.wrappers.ClipAction],
        g=3.7,
        max_episode_steps=5,
    )
    again = gymnasium.make_vec(envs.spec)
    for vector in (envs, again, shoal.make(envs.spec)):
        assert isinstance(vector, shoal.vector.VectorEnv)
        assert vector.num_envs == 3
        assert vector.autoreset_mode is AutoresetMode.SAME_STEP
        assert vector.get_attr("g") == (3.7, 3.7, 3.7)
        vector.reset(seed=0)
        vector.step(vector.action_space.sample())
        vector.close()
    assert again.spec == envs.spec


def test_arguments_override_a_vectors_spec():
    spec = shoal.make("Pendulum-v1", num_envs=3, g=3.7, statistics=True).spec
    with shoal.make(spec, num_envs=2, copy=False, g=1.0) as envs:
        assert envs.num_envs == 2
        assert envs.get_attr("g") == (1.0, 1.0)
        assert envs.spec.kwargs["vector_kwargs"] == {"copy": False, "statistics": True}


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point", None])
def test_patched_make_vec_passes_on_other_modes(patched_gymnasium, mode):
    envs = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode)
    assert not isinstance(envs, shoal.vector.VectorEnv)
    assert envs.num_envs == 2
    envs.close()


def test_patching_gymnasium_is_explicit_and_can_be_undone():
    original = gymnasium.make_vec
    with pytest.raises(ValueError, match="Invalid vectorization mode: 'shoal'"):
        gymnasium.make_vec("CartPole-v1", vectorization_mode="shoal")
    for _ in range(2):
        shoal.patch_gymnasium()
        assert gymnasium.make_vec is gymnasium.envs.registration.make_vec is not original
    for _ in range(2):
        shoal.unpatch_gymnasium()
        assert gymnasium.make_vec is gymnasium.envs.registration.make_vec is original


def test_set_attr():
    with shoal.make(ProbeEnv, num_envs=2) as envs:
        envs.set_attr("label", 9)
        assert envs.get_attr("label") == (9, 9)
        envs.set_attr("label", [1, 2])
        assert envs.get_attr("label") == (1, 2)
        with pytest.raises(ValueError, match="got 3 for 2"):
            envs.set_attr("label", [1, 2, 3])
        with pytest.raises(AttributeError) as info:
            envs.get_attr("no_such_thing")
        assert any("slot 0 of 2" in note for note in info.value.__notes__)


def test_num_envs_may_be_a_numpy_integer():
    with shoal.make(ProbeEnv, num_envs=np.int64(3)) as envs:
        assert envs.num_envs == 3
