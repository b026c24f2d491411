"""The documentation can be built, its links lead somewhere, and the reference lacks nothing."""

import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import zlib
from functools import cache

import pytest

import shoal
from tests.docs.pages import PAGES, ROOT, name_of

griffe = pytest.importorskip("griffe")

REFERENCE = {
    page.read_text().partition("\n")[0].removeprefix("# "): page
    for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
    if page.stem != "index"
}
"""The page of each public module, which is its title."""


@cache
def package():
    """The package as it is written: to import all of it would need what is not installed."""
    return griffe.load("shoal", search_paths=[ROOT / "src"], resolve_aliases=True)


def public(module):
    """A module's public names and what they stand for: None where that is another package's."""
    found = package()[module.removeprefix("shoal.")] if "." in module else package()
    for name in found.exports:
        try:
            thing = found.members[name]
            yield name, thing.final_target if thing.is_alias else thing
        except griffe.AliasResolutionError:
            yield name, None


def test_every_public_module_has_a_page():
    told = {name.split(".")[1] for name in REFERENCE if "." in name}
    there = {each.name for each in pkgutil.iter_modules(shoal.__path__) if each.name[0] != "_"}
    assert there == told


@pytest.mark.parametrize("module", REFERENCE)
def test_every_public_name_has_a_docstring(module):
    for name, thing in public(module):
        if thing is not None and (thing.is_class or thing.is_function or thing.is_module):
            assert thing.docstring, f"{module}.{name}"


def test_the_site_is_whole(tmp_path):
    # One test of all that looks at the site: to build it takes seconds.
    build(tmp_path)
    names_are_in_the_reference(tmp_path)
    nothing_is_fetched_from_elsewhere(tmp_path)


def build(folder):
    """Build the site; a link that leads nowhere is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def names_are_in_the_reference(site):
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    told = {line.split(" ")[0] for line in inventory.splitlines()}
    for module, page in REFERENCE.items():
        text = page.read_text()
        missing = [
            name
            for name, thing in public(module)
            if f"{module}.{name}" not in told
            and (thing is None or thing.path not in told)
            and not re.search(rf"`{name}\b", text)
        ]
        assert not missing, f"{page.name} does not tell of {missing}"


def nothing_is_fetched_from_elsewhere(site):
    fetched = re.compile(r"""<(script|link|img|iframe)\b[^>]*\b(src|href)=["']?(https?:)?//""")
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text()), page.name


def test_the_time_lines_are_what_a_vector_returns():
    path = ROOT / "docs" / "building" / "timelines.py"
    spec = importlib.util.spec_from_file_location("timelines", path)
    timelines = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = timelines  # where its dataclass looks for itself
    spec.loader.exec_module(timelines)
    for name, mode in timelines.MODES.items():
        drawn = timelines.PICTURES / f"autoreset-{name}.svg"
        assert drawn.read_text() == timelines.draw(mode), f"run {path.relative_to(ROOT)}"


def test_files_that_pages_name_are_there():
    named = re.compile(r"`((?:benchmarks|examples|native|src|tests)/[\w./-]+)`")
    for page in PAGES:
        for path in named.findall(page.read_text()):
            assert (ROOT / path).exists(), f"{name_of(page)}: {path}"
