"""Detection of changes that importing a module makes in other libraries."""

import subprocess
import sys

__all__ = ["changes_on_import"]

SCRIPT = """
import importlib, inspect, pkgutil, sys

imported, *libraries = sys.argv[1:]

for library in libraries:
    package = importlib.import_module(library)
    for each in pkgutil.walk_packages(package.__path__, library + ".", onerror=lambda name: None):
        try:
            importlib.import_module(each.name)
        except BaseException:
            pass  # needs an extra

def attributes():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in libraries or module is None:
            continue
        for key, value in list(vars(module).items()):
            found[f"{name}.{key}"] = value
            if inspect.isclass(value):
                for attribute, member in list(vars(value).items()):
                    # Interpreters and ABCs keep caches here.
                    if not attribute.startswith(("_abc_", "__abstractmethods__")):
                        found[f"{name}.{key}.{attribute}"] = member
    return found

before = attributes()
importlib.import_module(imported)
after = attributes()
missing = object()
for name in sorted({*before, *after}):
    if before.get(name, missing) is not after.get(name, missing):
        print(name)
"""


def changes_on_import(module, *libraries):
    """Import a module in a fresh interpreter; return what it changed in the libraries.

    All modules of the libraries are imported first. The result lists the attributes, of modules and
    of classes, that were added, removed or replaced, as dotted names.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, module, *libraries],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
