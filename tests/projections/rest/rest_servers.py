"""Servers of Iceberg REST for the tests: this project's, and the reference of Iceberg itself.

The reference and the compatibility kit come from Maven Central through the Ivy that Spark ships,
into the cache that Spark resolves its packages by; once there, nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from attrs import frozen

from tests.stores.servers.running import HOST, answers, free_port, missing, program, running

ICEBERG = "1.11.0"
_CACHE = Path.home() / ".ivy2.5.2/cache"
_DOWNLOADS_WITHIN_S = 400

# Group, name, version, classifiers. The pom of iceberg-open-api names no dependencies, so that all
# that it needs is listed.
_MODULES = (
    ("org.apache.hadoop", "hadoop-client-api", "3.4.3"),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.4.3"),
    ("org.apache.iceberg", "iceberg-api", ICEBERG, "", "tests"),
    ("org.apache.iceberg", "iceberg-core", ICEBERG, "", "tests"),
    ("org.apache.iceberg", "iceberg-data", ICEBERG),
    ("org.apache.iceberg", "iceberg-open-api", ICEBERG, "tests", "test-fixtures"),
    ("org.apache.iceberg", "iceberg-parquet", ICEBERG),
    ("org.assertj", "assertj-core", "3.27.6"),
    ("org.awaitility", "awaitility", "4.3.0"),
    ("org.eclipse.jetty.compression", "jetty-compression-gzip", "12.1.5"),
    ("org.eclipse.jetty.compression", "jetty-compression-server", "12.1.5"),
    ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.5"),
    ("org.junit.platform", "junit-platform-console-standalone", "1.13.4"),
    ("org.mockito", "mockito-core", "4.11.0"),
    ("org.slf4j", "slf4j-simple", "2.0.17"),
    ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
)

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches lockStrategy="artifact-lock-nio"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>"""


@frozen
class RestServer:
    """A running server.

    Attributes:
        uri: The catalog's URI, as clients are given it.
        warehouse: The root of its tables, or of the ledger.
        pid: The process.
    """

    uri: str
    warehouse: str
    pid: int


def class_path(folder: Path) -> str:
    """Return the class path of the kit and of the reference server.

    Args:
        folder: For files that are needed meanwhile.
    """
    return downloaded(folder, _ivy_module(), _SETTINGS, within_s=_DOWNLOADS_WITHIN_S)


def downloaded(folder: Path, module: str, settings: str, *, within_s: float) -> str:
    """Return the paths of a module's dependencies, in the order of a class path.

    Args:
        folder: For files that are needed meanwhile.
        module: The module, as Ivy's XML.
        settings: Settings, as Ivy's XML.
        within_s: Seconds until the download is given up.
    """
    (folder / "settings.xml").write_text(settings)
    (folder / "ivy.xml").write_text(module)
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command = [
        *(program("java", "Java 17"), "-jar", str(ivy), "-warn", "-cache", str(_CACHE)),
        *("-settings", "settings.xml", "-ivy", "ivy.xml", "-cachepath", "path.txt"),
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=within_s, check=False
        )
    except subprocess.TimeoutExpired:
        missing(f"Maven Central did not send all of this within {within_s:.0f} s:\n{module}")
    if done.returncode != 0 or "UNRESOLVED" in done.stdout + done.stderr:
        missing(f"some of this is in no cache and Maven Central fails:\n{module}\n{done.stdout}")
    return (folder / "path.txt").read_text().strip()


def _ivy_module() -> str:
    modules = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}">'
        f"{''.join(_artifact(name, each) for each in classifiers)}</dependency>"
        for group, name, version, *classifiers in _MODULES
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="lakeledger" module="kit"/>'
        '<configurations><conf name="default"/></configurations>'
        f'<dependencies defaultconf="default->default">{modules}</dependencies></ivy-module>'
    )


def _artifact(name: str, classifier: str) -> str:
    kind = f'm:classifier="{classifier}"' if classifier else ""
    return f'<artifact name="{name}" type="{classifier or "jar"}" ext="jar" {kind}/>'


@contextmanager
def reference_server(folder: Path, path: str) -> Iterator[RestServer]:
    """Run Iceberg's server: a JDBC catalog in a SQLite file, tables in a folder next to it.

    Args:
        folder: An empty folder.
        path: The class path.
    """
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    port = free_port()
    command = [
        *(program("java", "Java 17"), "-Xmx1g", "-cp", path),
        "org.apache.iceberg.rest.RESTCatalogServer",
    ]
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": str(warehouse),
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
    }
    uri = f"http://{HOST}:{port}"
    with running(command, folder, answers(f"{uri}/v1/config"), **settings) as process:
        yield RestServer(uri, str(warehouse), process.pid)


@contextmanager
def ledger_server(folder: Path, url: str, *flags: str, **environment: str) -> Iterator[RestServer]:
    """Run `lakeledger serve` on a ledger.

    Args:
        folder: A folder for its output.
        url: The root of an initialized ledger.
        flags: Further options of the command.
        environment: Further variables, such as the credentials of a bucket.
    """
    port = free_port()
    command = [sys.executable, "-m", "ledger", "serve", url, "--port", str(port), *flags]
    uri = f"http://{HOST}:{port}"
    with running(command, folder, answers(f"{uri}/v1/config"), **environment) as process:
        yield RestServer(uri, url, process.pid)
