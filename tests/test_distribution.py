"""Both published archives have the files that they should, and the package index accepts them."""

from __future__ import annotations

import email.message
import email.parser
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.programs import ROOT, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
DATA = {
    ".css",
    ".html",
    ".jinja",
    ".json",
    ".md",
    ".parquet",
    ".properties",
    ".py",
    ".svg",
    ".typed",
}
"""Kinds of files in the wheel, besides the licence."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = str(tmp_path_factory.mktemp("wheel"))
    (built,) = WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = str(tmp_path_factory.mktemp("sdist"))
    (built,) = SdistBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    text = zipfile.ZipFile(wheel).read(f"lakeledger-{VERSION}.dist-info/METADATA").decode()
    return email.parser.Parser().parsestr(text)


def tracked() -> set[str]:
    """Return the product's files of the source tree."""
    return {
        str(path.relative_to(ROOT))
        for package in ("ledger", "projections")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def test_the_wheel_has_every_file_of_both_packages_and_nothing_else(names: set[str]) -> None:
    inside = {each for each in names if not each.startswith("lakeledger-")}
    assert inside == tracked()
    assert {PurePosixPath(each).suffix for each in inside - {"ledger/LICENSE"}} <= DATA


@pytest.mark.parametrize(
    "name",
    [
        "ledger/py.typed",
        "projections/py.typed",
        "ledger/audit/page.html.jinja",
        "ledger/cli/quickstart/data/flights-2013-01.parquet",
        f"lakeledger-{VERSION}.dist-info/licenses/ledger/LICENSE",
        f"lakeledger-{VERSION}.dist-info/entry_points.txt",
    ],
)
def test_the_wheel_has_what_is_read_at_run_time(names: set[str], name: str) -> None:
    assert name in names


def test_the_source_archive_can_be_built_and_tested(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {each.name.partition("/")[2] for each in archive.getmembers()}
    assert tracked() <= names
    assert {"pyproject.toml", "README.md", "PKG-INFO", "tests/test_distribution.py"} <= names
    top = {each.partition("/")[0] for each in names}
    assert top - {".gitignore"} == {
        *("ledger", "projections", "tests", "benchmarks", "README.md", "pyproject.toml"),
        "PKG-INFO",
    }


def test_the_package_index_accepts_both_archives(wheel: Path, sdist: Path) -> None:
    checked = run("-m", "twine", "--no-color", "check", "--strict", wheel, sdist)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("PASSED") == 2


def test_the_metadata_names_what_a_user_looks_for(metadata: email.message.Message) -> None:
    classifiers = metadata.get_all("Classifier") or []
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"]
    for kind in ("Operating System ::", "Topic ::", "Programming Language :: Python :: 3.11"):
        assert [each for each in classifiers if each.startswith(kind)], kind
    # A link that leads nowhere is worse than none.
    assert metadata.get_all("Project-URL") is None
    assert metadata.get_all("Home-page") is None


def test_every_extra_that_messages_name_exists(metadata: email.message.Message) -> None:
    assert set(metadata.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])


def test_the_version_is_written_in_one_place() -> None:
    said = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "ledger").rglob("*.py")
        if f'"{VERSION}"' in path.read_text("utf-8")
    ]
    assert said == []
