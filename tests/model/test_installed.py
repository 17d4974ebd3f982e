"""Extensions of installed packages are found by the entry points of their metadata."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from ledger import MissingDependencyError
from ledger.model.plugins import (
    PluginEntryPoint,
    installed_entry_points,
    load,
    load_all_plugins,
    names,
    reload_plugins,
)

Package = Callable[[str, str], None]
GROUP = "lakeledger.tried"


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the only path on which is looked."""
    only: list[str] = []
    monkeypatch.setattr(sys, "path", only)
    return only


def package(folder: Path, text: str) -> str:
    """Let a package be installed; return the folder that it is in."""
    folder.mkdir(parents=True)
    (folder / "entry_points.txt").write_text(text)
    about = f"Metadata-Version: 2.1\nName: {folder.stem.partition('-')[0]}\n"
    (folder / ("METADATA" if folder.suffix == ".dist-info" else "PKG-INFO")).write_text(about)
    return str(folder.parent)


def test_all_that_is_installed_offers_what_the_library_says() -> None:
    said: dict[str, set[PluginEntryPoint]] = {}
    for package in {each.name.lower().replace("_", "-"): each for each in distributions()}.values():
        name = package.name.lower().replace("_", "-").replace(".", "-")
        for each in package.entry_points:
            said.setdefault(each.group, set()).add(PluginEntryPoint(each.name, each.value, name))
    reload_plugins()

    assert {"console_scripts", "lakeledger.formats", "pytest11"} <= said.keys()
    assert {group: set(installed_entry_points(group)) for group in said} == said


def test_what_an_entry_point_may_look_like_is_read(path: list[str], tmp_path: Path) -> None:
    text = f"""
        [{GROUP}]
        # one that is no more
        whole = json
        one = json:dumps
        inner=json:JSONEncoder.encode [fast, small]

        [console_scripts]
        other = json:loads
    """
    path.append(package(tmp_path / "A.b_c-1.0.dist-info", text))

    assert installed_entry_points(GROUP) == (
        PluginEntryPoint("whole", "json", "a-b-c"),
        PluginEntryPoint("one", "json:dumps", "a-b-c"),
        PluginEntryPoint("inner", "json:JSONEncoder.encode [fast, small]", "a-b-c"),
    )
    assert names(GROUP) == {"whole", "one", "inner"}
    import json

    assert load_all_plugins(GROUP) == {
        "inner": json.JSONEncoder.encode,
        "one": json.dumps,
        "whole": json,
    }


def test_of_a_package_that_is_there_twice_the_first_on_the_path_counts(
    path: list[str], tmp_path: Path
) -> None:
    path += [
        str(tmp_path / "nowhere"),
        package(tmp_path / "first/It-2.dist-info", f"[{GROUP}]\na = json:dumps"),
        package(tmp_path / "second/it-1.dist-info", f"[{GROUP}]\na = json:loads\nb = json"),
    ]

    assert installed_entry_points(GROUP) == (PluginEntryPoint("a", "json:dumps", "it"),)


def test_a_package_in_the_working_folder_is_found(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(package(tmp_path / "here.egg-info", f"[{GROUP}]\na = json"))
    path.append("")

    assert names(GROUP) == {"a"}


def test_a_package_without_readable_entry_points_offers_nothing(
    path: list[str], tmp_path: Path
) -> None:
    (tmp_path / "none-1.dist-info").mkdir()
    (tmp_path / "file-1.egg-info").write_text("Name: file")
    path.append(str(tmp_path))

    assert installed_entry_points(GROUP) == ()


def test_a_package_in_an_archive_is_found(path: list[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("packed-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: packed\n")
        archive.writestr("packed-1.dist-info/entry_points.txt", f"[{GROUP}]\na = json")
    path.append(str(tmp_path / "all.zip"))

    assert installed_entry_points(GROUP) == (PluginEntryPoint("a", "json", "packed"),)


def test_a_package_in_an_egg_is_found(path: list[str], tmp_path: Path) -> None:
    package(tmp_path / "old-1.egg/EGG-INFO", f"[{GROUP}]\na = json")
    (tmp_path / "old-1.egg/EGG-INFO/PKG-INFO").write_text("Metadata-Version: 2.1\nName: old\n")
    path.append(str(tmp_path / "old-1.egg"))

    assert installed_entry_points(GROUP) == (PluginEntryPoint("a", "json", "old"),)


class Elsewhere(Distribution):
    """A package that lies in no folder."""

    def read_text(self, filename: str) -> str | None:
        """Return what a file of its metadata says."""
        info = {"METADATA": "Metadata-Version: 2.1\nName: elsewhere\n"}
        return {**info, "entry_points.txt": f"[{GROUP}]\na = json"}.get(filename)

    def locate_file(self, path: object) -> Path:
        """Return where a file of it would be."""
        return Path(str(path))


class Finder:
    """Something that finds packages where no folder is."""

    @staticmethod
    def find_spec(*_asked: object) -> None:
        """Find no module."""

    @staticmethod
    def find_distributions(_context: object = None) -> list[Distribution]:
        """Return the package."""
        return [Elsewhere()]


def test_what_another_finder_finds_is_found(
    path: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    path.append(str(tmp_path))
    reload_plugins()

    assert installed_entry_points(GROUP) == (PluginEntryPoint("a", "json", "elsewhere"),)
    reload_plugins()


@pytest.mark.parametrize("value", ["json:nothing", "no_such_module", "no_such_module:a"])
def test_what_cannot_be_imported_is_refused_by_name(
    path: list[str], tmp_path: Path, value: str
) -> None:
    path.append(package(tmp_path / "broken-1.dist-info", f"[{GROUP}]\na = {value}"))

    with pytest.raises(MissingDependencyError, match=rf"a \({value}\) cannot be loaded"):
        load(GROUP, "a")
    with pytest.raises(MissingDependencyError, match="provides 'b', but a; install"):
        load(GROUP, "b")
