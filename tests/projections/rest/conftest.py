"""The servers that the tests of Iceberg REST talk to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ledger
from tests.projections.rest.rest_servers import (
    RestServer,
    class_path,
    ledger_server,
    reference_server,
)


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
    """This project's server on a new ledger."""
    folder = tmp_path_factory.mktemp("served")
    url = str(folder / "ledger")
    ledger.open(url).init()
    with ledger_server(folder, url) as server:
        yield server
