"""What the files around the code say of the project is one and the same."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

import shoal

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name):
    return (ROOT / name).read_text()


def test_there_is_one_version():
    newest = re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)
    assert newest is not None
    assert {PROJECT["version"], CITATION["version"], newest[1], distribution("shoal").version} == {
        PROJECT["version"]
    }


def test_there_is_one_licence():
    assert PROJECT["license"] == CITATION["license"] == "Apache-2.0"
    title, version = text("LICENSE").split("\n")[1:3]
    assert (title.strip(), version.strip()) == ("Apache License", "Version 2.0, January 2004")
    assert "Apache License, Version 2.0" in text("NOTICE")


def test_the_notice_names_the_extra_that_installs_gpl_software():
    (requirement,) = PROJECT["optional-dependencies"]["atari"]
    assert requirement.startswith("ale-py")
    assert "`atari`" in text("NOTICE")
    assert "ale-py" in text("NOTICE")
    assert "GNU General Public License, version 2" in text("NOTICE")
    bundled = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["train"]]
    assert not any(other.startswith("ale-py") for other in bundled)


def test_the_package_is_typed_and_carries_its_licence():
    assert (Path(shoal.__file__).parent / "py.typed").is_file()
    installed = {str(file) for file in distribution("shoal").files}
    assert "shoal/py.typed" in installed
    assert "shoal/include/shoal_kernel.h" in installed
    assert any(name.endswith("licenses/LICENSE") for name in installed)
    assert any(name.endswith("licenses/NOTICE") for name in installed)


def test_those_who_wrote_it_have_one_name():
    (author,), (cited,) = PROJECT["authors"], CITATION["authors"]
    assert author == cited == {"name": "The Shoal developers"}
    assert author["name"] in text("NOTICE")


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_for_something(form):
    said = yaml.safe_load(form.read_text())
    if form.stem == "config":
        assert said == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "labels", "body"} == set(said)
    asked = [part for part in said["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_forms_ask_for_what_the_command_line_can_tell():
    assert "shoal doctor --json" in text(".github/ISSUE_TEMPLATE/bug.yml")
    assert "shoal bench" in text(".github/ISSUE_TEMPLATE/performance.yml")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_actions_of_a_version(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(re.search(r"@v\d+(\.\d+)?$", step["uses"]) for step in steps if "uses" in step)


def test_the_workflow_runs_what_everybody_runs():
    jobs = yaml.safe_load(text(".github/workflows/test.yml"))["jobs"]
    (job,) = jobs.values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test"]
    assert text(".ci/run").splitlines()[-1] == "make test"


def test_hooks_use_the_tools_of_the_project():
    (repository,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert repository["repo"] == "local"
    linted = text("Makefile")
    for hook in repository["hooks"]:
        tool = hook["entry"].split()[0]
        assert tool.startswith(".venv/bin/")
        assert f"$(BIN)/{Path(tool).name}" in linted
