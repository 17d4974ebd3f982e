"""Flink for the tests: PyPI's package in a Python of its own, and a session that knows catalogs.

Paimon's connector, 55 MB, comes from Maven Central through Ivy, into the cache that Spark resolves
its packages by; Hadoop's classes are those that Spark ships. Sources: Flink's documentation of the
Table API for Python, Paimon's of its connector for Flink.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark
from attrs import frozen

from tests.projections.rest.paimon.paimon_clients import Json
from tests.projections.rest.rest_servers import downloaded
from tests.stores.servers.running import missing

FLINK = "2.0.2"
PAIMON = "1.4.2"
_PYTHONS = ((3, 9), (3, 12))
_INSTALLS_WITHIN_S = 900
_DOWNLOADS_WITHIN_S = 400

# Its pom leads to what the jar has in it already.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <caches lockStrategy="artifact-lock-nio"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>"""

_MODULE = f"""<ivy-module version="2.0">
  <info organisation="lakeledger" module="flink"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->*">
    <dependency org="org.apache.paimon" name="paimon-flink-2.0" rev="{PAIMON}" transitive="false"/>
  </dependencies>
</ivy-module>"""

# Reads a statement a line, as JSON; writes its rows or its error, a line each, to the first output.
_PROGRAM = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment
jars = ";".join("file://" + each for each in sys.argv[1:])
settings = Configuration()
for key, value in {
    "pipeline.jars": jars, "pipeline.classpaths": jars, "parallelism.default": "1",
    "taskmanager.numberOfTaskSlots": "2", "table.local-time-zone": "UTC",
    "rest.bind-address": "127.0.0.1", "rest.address": "127.0.0.1", "rest.bind-port": "0",
}.items():
    settings.set_string(key, value)
builder = EnvironmentSettings.new_instance().in_batch_mode()
session = TableEnvironment.create(builder.with_configuration(settings).build())
for line in sys.stdin:
    statement = json.loads(line)
    try:
        result = session.execute_sql(statement)
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            result.wait()
            answer = {"rows": []}
        else:
            answer = {"rows": sorted(str(each) for each in result.collect())}
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), file=answers)
"""


class FlinkError(Exception):
    """A statement failed."""


@frozen
class Flink:
    """A session in a process of its own."""

    _statements: IO[str]
    _answers: IO[str]

    def run(self, statement: str) -> list[str]:
        """Run a statement, to its end; return its rows as text, in order.

        Raises:
            FlinkError: It failed, or the process ended.
        """
        self._statements.write(f"{json.dumps(statement)}\n")
        self._statements.flush()
        line = self._answers.readline()
        answer: Json = json.loads(line) if line else {"error": "Flink's process ended"}
        if "error" in answer:
            raise FlinkError(f"{statement}: {answer['error']}")
        rows: list[str] = answer["rows"]
        return rows


@contextmanager
def flink_session(folder: Path, catalogs: Mapping[str, Mapping[str, str]]) -> Iterator[Flink]:
    """Start a session; skip where this Python has no Flink, or its files cannot be had.

    Args:
        folder: An empty folder.
        catalogs: The options of Paimon's catalogs, by their names.
    """
    low, high = _PYTHONS
    if not low <= sys.version_info[:2] < high:
        missing(f"PyPI's apache-flink {FLINK} is for Python from 3.9 to 3.11")
    python = _installed(folder)
    connector = downloaded(folder, _MODULE, _SETTINGS, within_s=_DOWNLOADS_WITHIN_S)
    hadoop = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar")
    command = [str(python), "-c", _PROGRAM, connector, *map(str, sorted(hadoop))]
    with (
        (folder / "output.txt").open("w") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        session = Flink(process.stdin, process.stdout)
        for name, options in catalogs.items():
            pairs = ", ".join(f"'{key}'='{value}'" for key, value in options.items())
            session.run(f"CREATE CATALOG {name} WITH ('type'='paimon', {pairs})")
        yield session


def _installed(folder: Path) -> Path:
    """Install Flink beside this project, whose libraries it holds back; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    command = [str(python), "-m", "pip", "install", "--quiet", f"apache-flink=={FLINK}"]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_INSTALLS_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        missing(f"PyPI did not send apache-flink {FLINK} within {_INSTALLS_WITHIN_S} s")
    except subprocess.CalledProcessError as error:
        missing(f"apache-flink {FLINK} cannot be installed:\n{error.stderr[-2000:]}")
    return python
