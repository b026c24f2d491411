"""What importing Shoal does, and what it leaves alone."""

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


@pytest.mark.parametrize("library", ["gymnasium", "cloudpickle", "multiprocessing"])
def test_import_replaces_nothing_in_other_libraries(library):
    assert changes_on_import("shoal", library) == []


def test_replaced_attributes_are_noticed(tmp_path, monkeypatch):
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


def test_star_import_works_without_extras():
    script = """
    import sys

    sys.modules["msgspec"] = None
    from shoal import *

    with make("CartPole-v1", 2) as envs:
        envs.reset(seed=0)
    import shoal

    try:
        shoal.connect
    except ImportError as error:
        print(error)
    """
    assert 'pip install "shoal[remote]"' in run(script)
