"""Engines do the same through this server as through Iceberg's reference server.

After every step the metadata of the table and the rows of each new snapshot are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from ledger.cli import main
from tests.projections.rest.client_scripts import (
    Step,
    duckdb_script,
    pyiceberg_script,
    spark_script,
)
from tests.projections.rest.rest_servers import RestServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_does_the_same_as_with_the_reference_server(
    spark: SparkSession, reference: RestServer, served: RestServer
) -> None:
    expected = spark_script(spark, reference.uri, reference.warehouse)
    _assert_same(expected, spark_script(spark, served.uri, served.warehouse))


def test_pyiceberg_does_the_same_as_with_the_reference_server(
    reference: RestServer, served: RestServer
) -> None:
    expected = pyiceberg_script(reference.uri, reference.warehouse)
    _assert_same(expected, pyiceberg_script(served.uri, served.warehouse))


def test_duckdb_does_the_same_as_with_the_reference_server(
    reference: RestServer, served: RestServer
) -> None:
    expected = duckdb_script(reference.uri, reference.warehouse)
    _assert_same(expected, duckdb_script(served.uri, served.warehouse))


@pytest.fixture(autouse=True)
def logs_are_intact_afterwards(served: RestServer) -> Iterator[None]:
    yield
    assert main(["verify", "--ledger", served.warehouse]) == 0


def _assert_same(expected: Iterator[Step], found: Iterator[Step]) -> None:
    for one, other in zip_longest(expected, found):
        assert other == one, one[0]
