"""The site builds, its links and the names in it exist, and the reference is complete."""

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
"""The page of each public module, by the module's name, which is the title of the page."""

TEXTS = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]

DESIGN = [
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "docs" / "internals").glob("*.md")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]
"""The pages that describe the code."""


@cache
def package():
    """The package as griffe reads it from its sources; not every module can be imported here."""
    return griffe.load("shoal", search_paths=[ROOT / "src"], resolve_aliases=True)


def public(module):
    """The public names of a module with their objects, None for those of another package."""
    found = package()[module.removeprefix("shoal.")] if "." in module else package()
    for name in found.exports:
        try:
            member = found.members[name]
            yield name, member.final_target if member.is_alias else member
        except griffe.AliasResolutionError:
            yield name, None


def test_every_public_module_has_a_page():
    modules = {each.name for each in pkgutil.iter_modules(shoal.__path__) if each.name[0] != "_"}
    assert modules == {name.split(".")[1] for name in REFERENCE if "." in name}


@pytest.mark.parametrize("module", REFERENCE)
def test_every_public_name_has_a_docstring(module):
    for name, member in public(module):
        if member is not None and (member.is_class or member.is_function or member.is_module):
            assert member.docstring, f"{module}.{name}"


def test_the_site_is_complete(tmp_path):
    # One test for all that needs the site, since building it takes seconds.
    build(tmp_path)
    check_reference(tmp_path)
    check_that_nothing_is_loaded_from_other_hosts(tmp_path)


def build(folder):
    """Build the site; a broken link is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def check_reference(site):
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    documented = {line.split(" ")[0] for line in inventory.splitlines()}
    for module, page in REFERENCE.items():
        text = page.read_text()
        missing = [
            name
            for name, member in public(module)
            if f"{module}.{name}" not in documented
            and (member is None or member.path not in documented)
            and not re.search(rf"`{name}\b", text)
        ]
        assert not missing, f"{page.name} lacks {missing}"


def check_that_nothing_is_loaded_from_other_hosts(site):
    loaded = re.compile(r"""<(script|link|img|iframe)\b[^>]*\b(src|href)=["']?(https?:)?//""")
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text()), page.name


def test_timelines_show_what_a_vector_returns():
    path = ROOT / "docs" / "building" / "timelines.py"
    spec = importlib.util.spec_from_file_location("timelines", path)
    timelines = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = timelines  # its dataclass looks up its own module
    spec.loader.exec_module(timelines)
    for name, mode in timelines.MODES.items():
        drawing = timelines.PICTURES / f"autoreset-{name}.svg"
        assert drawing.read_text() == timelines.draw(mode), f"run {path.relative_to(ROOT)}"


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_files_named_in_a_page_exist(page):
    paths = re.findall(r"`((?:benchmarks|examples|native|src|tests)/[\w./-]+)`", page.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


@cache
def code_names():
    """Every CamelCase word in the sources, the tests and the benchmarks."""
    folders = [ROOT / name for name in ("src", "native", "tests", "benchmarks")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    texts = (path.read_text() for path in files if path.suffix in (".py", ".h", ".cpp"))
    return {word for text in texts for word in re.findall(r"\b[A-Z]\w*[a-z]\w*[A-Z]\w*", text)}


@pytest.mark.parametrize("page", DESIGN, ids=name_of)
def test_classes_named_in_a_design_page_exist(page):
    names = re.findall(r"`(?:shoal\.[\w.]+\.)?([A-Z]\w*[a-z]\w*[A-Z]\w*)`", page.read_text())
    assert set(names) <= code_names()


def test_pages_named_in_docstrings_exist():
    sources = (ROOT / "src").rglob("*.py")
    pages = {page for path in sources for page in re.findall(r"docs/[\w/-]+\.md", path.read_text())}
    assert pages >= {"docs/internals/remote.md"}
    assert [page for page in pages if not (ROOT / page).exists()] == []
