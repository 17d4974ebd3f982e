"""Served ledgers, pypaimon's catalog over one, and Paimon's Java classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_application import PaimonApplication, paimon_application
from tests.readers.java_core import PaimonUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def paimon(tmp_path: Path) -> Iterator[PaimonApplication]:
    """A served ledger in a folder, in this process."""
    with paimon_application(tmp_path / "lake") as found:
        yield found


@pytest.fixture
def pypaimon_catalog(paimon: PaimonApplication) -> Any:
    """The catalog of pypaimon over the same ledger."""
    from pypaimon import CatalogFactory

    uri = f"{paimon.http.base_url}/paimon".replace("//paimon", "/paimon")
    options = {"metastore": "rest", "uri": uri, "warehouse": "any", "token.provider": "bear"}
    return CatalogFactory.create({**options, "token": "none"})


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Iterator[PaimonJvm]:
    """Paimon's Java classes, in the JVM that the run has anyway."""
    try:
        with PaimonJvm.running(spark) as found:
            yield found
    except PaimonUnavailableError as error:
        pytest.skip(str(error))
