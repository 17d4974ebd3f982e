from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.history.ledgers import Place, built


@pytest.fixture(scope="session")
def long_template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A table long enough for merged caches: 830 commits."""
    return built(tmp_path_factory.mktemp("long"), 830)


@pytest.fixture(scope="session")
def short_template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A table without caches, the last commit but one with a list file next to it: 76 commits."""
    return built(tmp_path_factory.mktemp("short"), 76)


@pytest.fixture
def long(long_template: Place, tmp_path: Path) -> Place:
    return _copy(long_template, tmp_path)


@pytest.fixture
def short(short_template: Place, tmp_path: Path) -> Place:
    return _copy(short_template, tmp_path)


def _copy(template: Place, folder: Path) -> Place:
    return Place(Path(shutil.copytree(template.folder, folder / "lake")))
