"""The page on serving runs from its first block to its last, each engine's block in that engine."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import ledger
from tests.projections.rest.rest_servers import RestServer, ledger_server
from tests.pypaimon_or_skip import needs_pypaimon
from tests.readers.engines import duckdb_connection
from tests.readers.iceberg_runtime import COORDINATES, rest_catalog
from tests.test_docs import ran_shell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "ledger/docs/serving.md"
ADDRESS = "http://127.0.0.1:8181"


def blocks(section: str) -> list[str]:
    """Return the blocks of a section, and what the page shows as their output."""
    (body,) = re.findall(
        rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    return re.findall(r"^```\w+\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)


def statements(block: str) -> list[str]:
    return [each.strip() for each in block.split(";") if each.strip()]


def run_python(block: str, uri: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block.replace(ADDRESS, uri), {"__name__": "page"})  # noqa: S102 - our own page
    return printed.getvalue()


def test_the_lines_of_each_engine_run_one_after_the_other(
    served: RestServer, spark: SparkSession, loaded_command: Path
) -> None:
    program, shown = blocks("PyIceberg")
    assert run_python(program, served.uri) == shown

    settings, script, shown = blocks("Spark")
    wanted = dict(line.split("=", 1) for line in settings.splitlines())
    assert wanted["spark.jars.packages"] == COORDINATES
    with rest_catalog(spark, served.uri, "lake") as session:
        for key, value in wanted.items():
            if key.startswith("spark.sql.catalog"):
                assert session.conf.get(key) == value.replace(ADDRESS, served.uri)
        rows = [session.sql(each).collect() for each in statements(script)]
        assert f"{rows[-1][0][0]}\n" == shown

    script, shown, retries = blocks("DuckDB")
    connection = duckdb_connection("httpfs", "avro", "iceberg")
    # The page's first two statements download what packages bring here.
    for each in statements(script)[2:]:
        connection.execute(each.replace(ADDRESS, served.uri))
    assert f"{connection.fetchall()[0][0]}\n" == shown
    connection.execute(retries)

    commands, reason = blocks("See what engines did")
    told = ran_shell(
        commands.replace("--ledger lake", f"--ledger {served.warehouse}"), loaded_command
    )
    assert "added column note STRING" in told
    assert told.count("append, +1 row,") == 2
    imported = program.partition("catalog =")[0]
    run_python(f"{imported}{reason}catalog.create_namespace('merged')", served.uri)
    told = ran_shell(f"lakeledger log --ledger {served.warehouse}", loaded_command)
    assert "the cities of the merger" in told


def test_the_lines_of_pypaimon_run_and_their_commits_are_in_the_log(
    tmp_path: Path, loaded_command: Path
) -> None:
    needs_pypaimon()
    program, shown = blocks("pypaimon")
    url = str(tmp_path / "lake")
    ledger.open(url).init()
    with ledger_server(tmp_path, url) as served:
        assert run_python(program, served.uri) == shown
    told = ran_shell(f"lakeledger log web.visits --ledger {url}", loaded_command)
    assert told.count("APPEND") == 2
    assert "first" in told


def test_the_keys_of_the_page_sign_requests(tmp_path: Path) -> None:
    needs_pypaimon()
    keys, commands, program, shown = blocks("Signed requests of Paimon's clients")
    chmod, serve = commands.splitlines()
    path = tmp_path / "keys.toml"
    path.write_text(keys)
    subprocess.run(chmod.split(), cwd=tmp_path, check=True)
    url = str(tmp_path / "lake")
    ledger.open(url).init()
    with ledger_server(tmp_path, url, *serve.replace("keys.toml", str(path)).split()[3:]) as served:
        assert run_python(program, served.uri) == shown

    assert [*ledger.open(url).events()][-1].transactions[0].author == "ann"


def test_the_settings_of_trino_and_flink_name_the_server() -> None:
    # `test_trino.py` runs Trino with them.
    trino, *_ = blocks("Trino")
    (flink,) = blocks("Flink")
    assert f"iceberg.rest-catalog.uri={ADDRESS}" in trino.splitlines()
    assert f"'uri' = '{ADDRESS}'" in flink
    # `test_flink.py` runs Flink with them.
    (paimon,) = blocks("Flink and Java with Paimon")
    assert f"'uri' = '{ADDRESS}/paimon'" in paimon


def test_the_options_of_the_page_are_those_of_the_command(loaded_command: Path) -> None:
    told = ran_shell("lakeledger serve --help\nlakeledger serve-token --help", loaded_command)
    others = {"--conf", "--dropped", "--back", "--data"}
    for option in set(re.findall(r"(?<!-)--[a-z][a-z-]*", PAGE.read_text())) - others:
        assert option in told, option
