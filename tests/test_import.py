"""Side effects and requirements of importing Shoal."""

import subprocess
import sys
from textwrap import dedent

import pytest

from tests.import_effects import changes_on_import


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("module", "libraries"),
    [
        ("shoal", ["gymnasium", "cloudpickle", "multiprocessing"]),
        ("shoal.sb3", ["gymnasium", "cloudpickle", "multiprocessing", "stable_baselines3"]),
    ],
)
def test_import_replaces_nothing_in_other_libraries(module, libraries):
    pytest.importorskip(libraries[-1])
    assert changes_on_import(module, *libraries) == []


@pytest.mark.parametrize("module", ["shoal", "shoal.sb3"])
def test_import_does_not_change_the_interpreter(module):
    script = f"""
    import gymnasium, importlib, logging, os, signal, sys, threading, warnings

    if "{module}" == "shoal.sb3":
        import stable_baselines3

    def state():
        return {{
            "environment": dict(os.environ),
            "excepthooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
            "handlers": {{each: signal.getsignal(each) for each in signal.valid_signals()}},
            "logging": (list(logging.root.handlers), logging.root.level),
            "path": list(sys.path),
            "threads": threading.active_count(),
            "warnings": list(warnings.filters),
        }}

    before = state()
    importlib.import_module("{module}")
    after = state()
    print(*(name for name in before if before[name] != after[name]))
    """
    assert run(script).split() == []


def test_replaced_attributes_are_detected(tmp_path, monkeypatch):
    (tmp_path / "patching.py").write_text(
        "import gymnasium\ngymnasium.make_vec = gymnasium.Env.close = gymnasium.extra = print\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    changed = changes_on_import("patching", "gymnasium")
    assert {"gymnasium.make_vec", "gymnasium.Env.close", "gymnasium.extra"} <= set(changed)


def test_import_registers_environments():
    script = """
    import sys
    import gymnasium

    assert not any(name.startswith("shoal/") for name in gymnasium.registry)
    gymnasium.make("shoal:shoal/Hockey-v0").close()
    print(*(name for name in gymnasium.registry if name.startswith("shoal/")))
    """
    assert run(script).split() == [
        "shoal/Hockey-v0",
        "shoal/HockeyDiscrete-v0",
        "shoal/HockeyOne-v0",
        "shoal/HockeyOneDiscrete-v0",
    ]


# Refuses all imports except those of the standard library, Shoal and its dependencies.
WITHOUT_EXTRAS = """
import sys

ALLOWED = {"shoal", "numpy", "gymnasium", "farama_notifications", "cloudpickle"}
ALLOWED |= {"typing_extensions", *sys.stdlib_module_names}

class NoExtras:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and not top.startswith("_"):
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, NoExtras())
"""


def run_without_extras(script):
    return run(WITHOUT_EXTRAS + dedent(script))


def test_star_import_works_without_extras():
    script = """
    from shoal import *

    with make("CartPole-v1", 2) as envs:
        envs.reset(seed=0)
        envs.step([0, 1])
    with make("CartPole-v1", 2, backend="inline") as envs:
        envs.reset(seed=0)
        envs.step([0, 1])

    import shoal

    assert all(globals()[name] is getattr(shoal, name) for name in shoal.__all__)
    print(*sorted(shoal.__all__))
    """
    names = ["Batch", "kernels", "make", "patch_gymnasium", "unpatch_gymnasium"]
    assert run_without_extras(script).split() == names


@pytest.mark.parametrize(
    "module", ["shoal.vector", "shoal.vector.wrappers", "shoal.wrappers", "shoal.hockey"]
)
def test_modules_without_extras_can_be_imported(module):
    run_without_extras(f"import {module}")


@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("import shoal.sb3", "shoal[sb3]"),
        ("import shoal; shoal.connect", "shoal[remote]"),
        ("import shoal; shoal.serve", "shoal[remote]"),
    ],
)
def test_missing_extras_are_named(statement, extra):
    script = f"""
    try:
        exec({statement!r})
    except ImportError as error:
        print(error)
    """
    assert extra in run_without_extras(script)
