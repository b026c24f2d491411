"""The files around the code agree with each other and with the installed package."""

import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

import pytest
import yaml

import shoal
from tests.docs.command_line import parse

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORM_PARTS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
"""The types of parts that GitHub's issue forms can have."""


def text(name):
    return (ROOT / name).read_text()


def test_versions_agree():
    newest = re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)
    assert newest is not None
    versions = {CITATION["version"], newest[1], distribution("shoal").version, shoal.__version__}
    assert versions == {PROJECT["version"]}


def test_licences_agree():
    lines = text("LICENSE").split("\n")
    name, version = lines[1].split()[0], re.search(r"Version (\S+),", lines[2])
    assert version is not None
    assert PROJECT["license"] == CITATION["license"] == f"{name}-{version[1]}"
    assert f"{lines[1].strip()}, Version {version[1]}" in text("NOTICE")


def requirements():
    """The packages that an installation of Shoal can bring, by extra; "" for every installation."""
    extras = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for extra, needed in extras.items():
        if extra in ("dev", "test"):  # for developers only
            continue
        for requirement in needed:
            yield extra, re.match(r"[\w.-]+", requirement)[0]


def test_the_notice_names_every_extra_that_installs_gpl_software():
    gpl = set()
    for extra, package in requirements():
        try:
            about = metadata(package)
        except PackageNotFoundError:
            continue
        licence = about.get("License-Expression") or about.get("License") or ""
        licence = licence.partition("\n")[0]  # the rest is the text of the licence
        if re.search(r"\bGPL", licence):  # does not match LGPL
            gpl.add((extra, package))
    assert gpl == {("atari", "ale-py")}
    for extra, package in gpl:
        assert f"`{extra}`" in text("NOTICE")
        assert package in text("NOTICE")


def test_the_package_is_typed_and_contains_its_licence():
    assert (Path(shoal.__file__).parent / "py.typed").is_file()
    installed = {str(file) for file in distribution("shoal").files}
    assert "shoal/py.typed" in installed
    assert "shoal/include/shoal_kernel.h" in installed
    for name in PROJECT["license-files"]:
        assert any(file.endswith(f"licenses/{name}") for file in installed), name


def test_authors_agree():
    assert PROJECT["authors"] == CITATION["authors"]
    for author in PROJECT["authors"]:
        assert f"Copyright 2026 {author['name']}" in text("NOTICE")


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.stem != "config"], ids=lambda path: path.stem
)
def test_an_issue_form_is_valid_and_requires_an_answer(form):
    content = yaml.safe_load(form.read_text())
    assert {"name", "description", "labels", "body"} == set(content)
    assert {part["type"] for part in content["body"]} <= FORM_PARTS
    questions = [part for part in content["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in questions)
    assert len({part["id"] for part in questions}) == len(questions)
    assert any(part.get("validations", {}).get("required") for part in questions)


def test_commands_in_issue_forms_can_be_parsed():
    commands = [found for form in FORMS for found in re.findall(r"`(shoal [^`]+)`", text(form))]
    assert {command.split()[1] for command in commands} >= {"doctor", "bench"}
    for command in commands:
        parse(shlex.split(command)[1:])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_the_versions_of_actions(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(re.search(r"@v\d+(\.\d+)?$", step["uses"]) for step in steps if "uses" in step)


def test_ci_runs_what_developers_run():
    jobs = yaml.safe_load(text(".github/workflows/test.yml"))["jobs"]
    (job,) = jobs.values()
    (command,) = [step["run"] for step in job["steps"] if "run" in step]
    assert text(".ci/run").splitlines()[-1] == command
    assert f"`{command}`" in text("CONTRIBUTING.md")
    assert re.search(rf"^{command.removeprefix('make ')}:", text("Makefile"), re.M)


def test_commands_of_the_contributors_guide_exist():
    targets = set(re.findall(r"^([\w-]+):", text("Makefile"), re.M))
    named = re.findall(r"`make ([\w-]+)`", text("CONTRIBUTING.md"))
    assert len(named) > 6
    assert set(named) <= targets


def test_hooks_run_the_linters_of_the_makefile():
    (repository,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    makefile = text("Makefile")
    for hook in repository["hooks"]:
        tool = hook["entry"].split()[0]
        assert tool.startswith(".venv/bin/")
        assert f"$(BIN)/{Path(tool).name}" in makefile
