"""The section on reading rows of the page on Spark runs with Iceberg's own runtime."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import ledger
from ledger import Schema, transforms
from tests.projections.rest.rest_servers import ledger_server
from tests.readers.iceberg_runtime import COORDINATES, catalog_of, hadoop_catalog, rest_catalog
from tests.readers.lakehouse import add_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "ledger/docs/spark.md"
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def printed(session: SparkSession, script: str) -> str:
    """Return the rows of statements, a line each."""
    queries = [each for each in script.split(";") if each.strip()]
    rows = [row for query in queries for row in session.sql(query).collect()]
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def test_the_lines_of_the_page_read_rows_at_versions_and_tags(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = PAGE.read_text()
    section = text[text.index("\n## Read rows") : text.index("\n## Statistics")]
    served, served_shown, settings, files, files_shown = BLOCK.findall(section)
    url = str(tmp_path / "lake-of-the-page")
    lake = ledger.open(url)
    lake.create_database("shop")
    spec = [transforms.identity("n")]
    schema = Schema.of({"id": "BIGINT", "n": "INT"})
    visits = lake.create_table("shop.visits", schema, partition_spec=spec)
    for version, (first, last) in enumerate(((0, 600), (600, 1000), (1000, 1003)), 1):
        rows = [{"id": number, "n": version} for number in range(first, last)]
        add_rows(visits, f"n={version}/{version}.parquet", rows)
        if version == 2:
            visits.create_tag("january")

    with (
        ledger_server(tmp_path, url) as server,
        rest_catalog(spark, server.uri, "page_lake") as session,
    ):
        assert printed(session, served.replace("lake.", "page_lake.")) == served_shown

    wanted = dict(line.split("=", 1) for line in settings.splitlines())
    assert wanted.pop("spark.jars.packages") == COORDINATES
    visits.project("iceberg")
    with hadoop_catalog(spark, url) as session:
        name = catalog_of(url)
        for key, value in wanted.items():
            mine = key.replace("catalog.files", f"catalog.{name}")
            assert session.conf.get(mine) == (url if value == "lake" else value)
        assert printed(session, files.replace("files.", f"`{name}`.")) == files_shown
