"""Check that imports point downward through the layers of ``src/shoal``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent.parent / "src"

LAYERS = """
    __main__
    _cli
    live
    _bench doctor rllib train
    shoal
    _gymnasium_patch _registration pettingzoo remote skrl tianshou torchrl
    _make
    _pool_factory atari hockey image sb3
    _envs _options legacy testing wrappers
    vector
    _plan
    pools
    _memory kernels
    _error_description _spaces _wrapper_core
    _error_hints _formatting errors
    _native
    _types
"""
"""The modules and packages of ``shoal``, highest layer first; ``shoal`` is its ``__init__.py``.

A module imports only from its own package and from lower layers. Names on one line do not import
each other.
"""

CYCLES = {
    ("shoal.pettingzoo._hockey_ids", "shoal.pettingzoo.hockey_v0"): (
        "hockey_v0 registers its functions in _hockey_ids, which makes a match of hockey by its id"
    ),
}
"""Imports (from, to) that may close a cycle within a package, each with its reason."""


class Import(NamedTuple):
    """One imported module, and where the import statement is."""

    importer: str
    line: int
    imported: str

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: imports {self.imported}"


def modules(sources: Path) -> dict[str, Path]:
    """The file of each module under ``sources``, by the module's name."""
    found = {}
    for path in [*sources.rglob("*.py"), *sources.rglob("*.pyi")]:
        parts = path.relative_to(sources).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(sources: Path) -> Iterator[Import]:
    """Every import of one of these modules by another, also inside functions."""
    known = modules(sources)
    for importer, path in known.items():
        package = importer.split(".")
        if path.stem != "__init__":
            package.pop()
        for statement in run_time_nodes(ast.parse(path.read_text())):
            if isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                base = package[: len(package) + 1 - statement.level] if statement.level else []
                start = ".".join([*base, *([statement.module] if statement.module else [])])
                full = [f"{start}.{alias.name}" for alias in statement.names]
                names = [name if name in known else start for name in full]
            else:
                continue
            yield from (
                Import(importer, statement.lineno, name)
                for name in names
                if name in known and name != importer
            )


def run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node of a syntax tree, without the bodies of ``if TYPE_CHECKING``."""
    yield node
    skipped: list[ast.stmt] = []
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        skipped = node.body
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from run_time_nodes(child)


def part_of(module: str) -> str:
    """The name in ``LAYERS`` that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def layers(text: str) -> dict[str, int]:
    """The layer of each name, 0 for the lowest."""
    lines = text.split("\n")
    return {name: -number for number, line in enumerate(lines) for name in line.split()}


def upward(sources: Path, text: str) -> list[str]:
    """The imports that do not point downward."""
    layer = layers(text)
    return [
        str(each)
        for each in imports(sources)
        if part_of(each.importer) != part_of(each.imported)
        and layer[part_of(each.importer)] <= layer[part_of(each.imported)]
    ]


def cycle(sources: Path, allowed: set[tuple[str, str]]) -> list[str]:
    """The modules of a cycle of imports, each imported by the next one; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for each in imports(sources):
        if (each.importer, each.imported) not in allowed:
            graph.setdefault(each.importer, set()).add(each.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_layers_name_exactly_the_modules_that_exist():
    listed = LAYERS.split()
    assert len(listed) == len(set(listed)), "a name appears twice"
    existing = {part_of(name) for name in modules(SOURCES)}
    assert existing - set(listed) == set(), "modules without a layer"
    assert set(listed) - existing == set(), "layers without a module"


def test_imports_point_downward():
    assert upward(SOURCES, LAYERS) == []


def test_modules_do_not_import_each_other_in_a_cycle():
    assert cycle(SOURCES, set(CYCLES)) == []


def test_allowed_cycles_still_exist():
    for exception in CYCLES:
        assert cycle(SOURCES, set(CYCLES) - {exception}), f"remove {exception} from CYCLES"


def write_package(folder: Path, **sources: str) -> None:
    """Write a package ``shoal`` with these modules."""
    (folder / "shoal").mkdir()
    for name, source in {"__init__": "", **sources}.items():
        (folder / "shoal" / f"{name}.py").write_text(source)


def test_an_upward_import_is_reported_wherever_it_is(tmp_path):
    write_package(
        tmp_path,
        low="def f():\n    from shoal.high import g\n",
        middle="import shoal.low\nif True:\n    from . import high\n",
        high="from typing import TYPE_CHECKING\nfrom shoal.middle import x\n",
        typed="if TYPE_CHECKING:\n    from shoal import high\n",
    )
    assert sorted(upward(tmp_path, "shoal\nhigh\nmiddle\nlow typed")) == [
        "shoal.low, line 2: imports shoal.high",
        "shoal.middle, line 3: imports shoal.high",
    ]


def test_an_import_within_a_layer_is_reported(tmp_path):
    write_package(tmp_path, one="from shoal import two\n", two="")
    assert upward(tmp_path, "shoal\none two") == ["shoal.one, line 1: imports shoal.two"]


def test_a_cycle_is_reported_unless_it_is_allowed(tmp_path):
    write_package(tmp_path, one="import shoal.two", two="def f():\n    from shoal import one\n")
    assert set(cycle(tmp_path, set())) == {"shoal.one", "shoal.two"}
    assert cycle(tmp_path, {("shoal.two", "shoal.one")}) == []
