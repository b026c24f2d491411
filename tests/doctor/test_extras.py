"""Extras, read from the metadata of packages."""

import sys

import pytest

from shoal.doctor._extras import read_extras, read_required


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Writes the metadata of packages, which then count as installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def install(name, version, extras=(), requires=()):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")

    return install


@pytest.fixture
def extras(installed):
    """The extras of a package, by name, with one of every kind."""
    installed("engine", "2.0", ["fast"], ['turbo>=1; extra == "fast"', 'slow; extra == "old"'])
    installed("turbo", "1.5rc1")
    installed("paint", "0.9")
    installed(
        "boat",
        "1.0",
        ["motor", "sails", "colours", "never", "all", "test", "dev"],
        [
            'engine[fast]>=1.0; extra == "motor"',
            'canvas>=3; extra == "sails"',
            'paint>=1.0; extra == "colours"',
            'oars; python_version < "3" and extra == "never"',
            'boat[motor,sails]; extra == "all"',
            'engine; extra == "test"',
            'boat[test]; extra == "dev"',
            "turbo>=1.0",
            "paint>=1.0",
            'oars; python_version < "3"',
        ],
    )
    return {extra.name: extra for extra in read_extras("boat")}


def test_bundles_and_developer_extras_are_not_listed(extras):
    assert list(extras) == ["motor", "sails", "colours", "never"]


def test_extras_of_other_packages_are_resolved(extras):
    motor = extras["motor"]
    assert [(part.name, part.version) for part in motor.parts] == [
        ("engine", "2.0"),
        ("turbo", "1.5rc1"),
    ]
    assert motor.state == "present"


def test_missing_and_unsuitable_packages_are_reported_with_the_command_to_install(extras):
    sails, colours = extras["sails"], extras["colours"]
    assert (sails.state, sails.install) == ("missing", 'pip install "boat[sails]"')
    (part,) = colours.parts
    assert (colours.state, part.version, part.wanted) == ("unsuitable", "0.9", ">=1.0")


def test_requirements_whose_marker_does_not_match_are_ignored(extras):
    assert extras["never"].parts == ()


def test_required_packages(extras):
    states = {part.name: part.state for part in read_required("boat")}
    assert states == {"turbo": "present", "paint": "unsuitable"}


def test_the_extras_of_shoal_include_atari_with_a_note_on_its_licence():
    extras = {extra.name: extra for extra in read_extras()}
    assert {"atari", "train", "remote", "ray", "cli"} <= set(extras)
    assert not {"all", "test", "test-libraries", "dev"} & set(extras)
    assert "GPL" in extras["atari"].note
    assert {part.name for part in read_required()} == {"numpy", "gymnasium", "cloudpickle"}
