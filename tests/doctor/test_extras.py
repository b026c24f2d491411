"""Extras, read from the metadata of packages."""

import sys

import pytest

from shoal.doctor._extras import read_extras, read_required


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Writes the metadata of packages that are then installed."""
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
    """The extras of a package that has one of each kind, by name."""
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


def test_bundles_and_what_is_for_developers_are_no_extras_of_their_own(extras):
    assert list(extras) == ["motor", "sails", "colours", "never"]


def test_what_extras_of_other_packages_bring_is_a_part(extras):
    motor = extras["motor"]
    assert [(part.name, part.version) for part in motor.parts] == [
        ("engine", "2.0"),
        ("turbo", "1.5rc1"),
    ]
    assert motor.state == "present"


def test_what_is_missing_or_too_old_is_told_with_the_line_to_install(extras):
    sails, colours = extras["sails"], extras["colours"]
    assert (sails.state, sails.install) == ("missing", 'pip install "boat[sails]"')
    (part,) = colours.parts
    assert (colours.state, part.version, part.wanted) == ("unsuitable", "0.9", ">=1.0")


def test_what_does_not_apply_here_is_not_asked_for(extras):
    assert extras["never"].parts == ()


def test_what_a_package_cannot_do_without(extras):
    states = {part.name: part.state for part in read_required("boat")}
    assert states == {"turbo": "present", "paint": "unsuitable"}


def test_the_extras_of_shoal_are_told_with_the_licence_that_is_not_its_own():
    extras = {extra.name: extra for extra in read_extras()}
    assert {"atari", "train", "remote", "ray", "cli"} <= set(extras)
    assert not {"all", "test", "test-libraries", "dev"} & set(extras)
    assert "GPL" in extras["atari"].note
    assert {part.name for part in read_required()} == {"numpy", "gymnasium", "cloudpickle"}
