"""Served ledgers, and the reference server that they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ledger
from tests.projections.rest.application import Application, application
from tests.projections.rest.rest_servers import (
    RestServer,
    class_path,
    ledger_server,
    reference_server,
)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    """A served ledger in a folder, in this process."""
    with application(tmp_path / "lake") as found:
        yield found


@pytest.fixture(scope="session")
def kit_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of Iceberg's compatibility kit and reference server."""
    return class_path(tmp_path_factory.mktemp("ivy"))


@pytest.fixture(scope="module")
def reference(kit_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with reference_server(tmp_path_factory.mktemp("reference"), kit_path) as server:
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """The command `serve` on a new ledger."""
    folder = tmp_path_factory.mktemp("served")
    url = str(folder / "ledger")
    ledger.open(url).init()
    with ledger_server(folder, url) as server:
        yield server
