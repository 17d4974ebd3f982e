"""Iceberg's compatibility kit for REST catalogs, version 1.11.0, runs against the server.

The kit is JUnit classes that Iceberg publishes; the JUnit console launcher runs them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import ledger
from tests.projections.rest.rest_servers import ledger_server
from tests.stores.servers.running import program

TESTS = 157
PASSED_AT_LEAST = 144
_RUNS_WITHIN_S = 300
_PLACE = "/tmp"  # noqa: S108 - the kit asks for tables there

_EMPTY = "an empty namespace, which no catalog of databases has"
_NESTED = "namespaces of more than one level, which a ledger has not"
_DOT = "names with dots, which end a database's name in a ledger"
_SLASH = "names with slashes: the kit asks them of no REST catalog"
_LOST = "a table without its metadata file fails to load: the log has it all the same"
NOT_PASSED = {
    "createAndDropEmptyNamespace": _EMPTY,
    "listNamespacesWithEmptyNamespace": _EMPTY,
    "listTablesInEmptyNamespace": _EMPTY,
    "listViewsInEmptyNamespace": _EMPTY,
    "namespacePropertiesOnEmptyNamespace": _EMPTY,
    "testListNestedNamespaces": _NESTED,
    "testDropNamespaceWithNestedNamespace": _NESTED,
    "testNamespaceWithDot": _DOT,
    "testTableNameWithDot": _DOT,
    "testNamespaceWithSlash": _SLASH,
    "testTableNameWithSlash": _SLASH,
    "createTableInUniqueLocation": "disabled in the kit: it configures a server for one test",
    "testLoadTableWithMissingMetadataFile(Path)": _LOST,
}
"""Each test that does not pass, and what it asks for."""


@pytest.fixture(scope="module")
def verdicts(kit_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The verdict of each test, by its name: empty where it passed."""
    folder = tmp_path_factory.mktemp("kit")
    url = str(folder / "ledger")
    ledger.open(url).init()
    with ledger_server(folder, url, "--allow-location", _PLACE) as server:
        return run_kit(server.uri, kit_path, folder)


def run_kit(uri: str, path: str, folder: Path) -> dict[str, str]:
    classes = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")
    command = [
        *(program("java", "Java 17"), "-Xmx1g", "-XX:TieredStopAtLevel=1", "-cp", path),
        # The kit reads some settings with the prefix and hands the others to its client.
        *("-Drck.local=false", "-Drck.requires-namespace-create=true"),
        *(f"-Drck.uri={uri}", f"-Duri={uri}"),
        *("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"),
        *("--details=none", "--reports-dir=reports"),
        *(f"--select-class=org.apache.iceberg.rest.{each}" for each in classes),
    ]
    # It ends with 1 where a test failed.
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_RUNS_WITHIN_S, check=False
    )
    report = folder / "reports" / "TEST-junit-jupiter.xml"
    assert report.exists(), done.stdout + done.stderr
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - JUnit wrote it here
    return {each.attrib["name"].removesuffix("()"): _verdict(each) for each in cases}


def _verdict(case: ET.Element) -> str:
    found = [each for kind in ("failure", "error", "skipped") for each in case.iter(kind)]
    return "\n".join(each.get("message") or each.text or each.tag for each in found)


def test_the_kit_is_complete(verdicts: dict[str, str]) -> None:
    assert len(verdicts) == TESTS
    assert verdicts.keys() >= NOT_PASSED.keys()


def test_what_does_not_pass_has_a_reason(verdicts: dict[str, str]) -> None:
    unexplained = {name: why for name, why in verdicts.items() if why and name not in NOT_PASSED}
    assert not unexplained


def test_enough_of_the_kit_passes(verdicts: dict[str, str]) -> None:
    passed = [name for name, why in verdicts.items() if not why]
    assert len(passed) >= PASSED_AT_LEAST
    assert not NOT_PASSED.keys() & set(passed), "passes now: take it out of the table"
