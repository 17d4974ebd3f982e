"""The command `ui`: binds to this machine only, writes nothing, and stops cleanly."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import ledger
from projections.rest.authentication import add_token
from projections.rest.page.command import HOST
from tests.lakes import data_file
from tests.projections.rest.page.page_client import EVERY_PAGE, page_client
from tests.projections.rest.test_server import PROGRAM, start
from tests.stores.test_refusals import as_somebody_else

UI = PROGRAM.replace("import serve, serve_token", "import serve, serve_token, ui").replace(
    "serve_token(app)", "serve_token(app), ui(app)"
)
ORDERS = "shop.orders"


def lake_in(folder: Path) -> ledger.Ledger:
    lake = ledger.open(str(folder))
    lake.create_database("shop")
    columns = ledger.Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table(ORDERS, columns)
    table.append([data_file("a.parquet")])
    return lake


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_address_shows_the_ledger_and_stops_at_a_signal(
    tmp_path: Path, how: signal.Signals
) -> None:
    lake_in(tmp_path / "lake")
    process = start("ui", tmp_path / "lake", "--port", 0, "--output", "jsonl", program=UI)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["uri"].startswith(f"http://{HOST}:")
        assert said["ledger"].endswith("/lake")
        answer = httpx.get(said["uri"])
        assert (answer.status_code, "shop" in answer.text) == (200, True)
        process.send_signal(how)
        _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
    finally:
        process.kill()


def test_it_has_no_option_for_another_address(tmp_path: Path) -> None:
    assert HOST == "127.0.0.1"
    code, _, err = outcome_of("ui", tmp_path, "--host", "::")
    assert code != 0
    assert "--host" in err


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("--port", "70000"), 2, "--port 70000 is no port; give 0 to 65535"),
        (("--port", "-1"), 2, "--port -1 is no port"),
        (("--ledger", "other"), 2, "none and other; give one"),
        ((), 3, "there is no ledger at"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, line: tuple[str, ...], code: int, said: str
) -> None:
    found = outcome_of("ui", tmp_path / "none", *line)

    assert (found[0], found[1]) == (code, "")
    assert said in found[2]
    assert not (tmp_path / "none").exists()


def outcome_of(*line: object) -> tuple[int, str, str]:
    process = start(*line, program=UI)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("flag", "status", "has_page"), [("--token-file", 401, True), ("--dlf-keys", 404, False)]
)
def test_a_catalog_shows_the_page_only_where_a_browser_can_authenticate(
    tmp_path: Path, flag: str, status: int, *, has_page: bool
) -> None:
    lake_in(tmp_path / "lake")
    add_token(tmp_path / "--token-file", "ann")
    keys = tmp_path / "--dlf-keys"
    keys.write_text('[key]\nsecret = "long and random"\nprincipal = "ann"\n')
    keys.chmod(0o600)
    line = ("serve", tmp_path / "lake", "--port", 0, "--output", "jsonl", flag, tmp_path / flag)
    process = start(*line, program=UI)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said.get("pageUri") == (f"{said['uri']}/" if has_page else None)
        for path in EVERY_PAGE:
            answer = httpx.get(said["uri"] + path)
            assert answer.status_code == status, path
            assert "<table" not in answer.text
            assert "parquet" not in answer.text
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may come to."""
    made = Path(tempfile.mkdtemp(prefix="read-only-page-"))
    made.chmod(0o755)
    yield made
    for each in made.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
    shutil.rmtree(made)


def test_a_ledger_that_may_only_be_read_is_shown_and_stays_as_it_is(folder: Path) -> None:
    lake_in(folder / "lake").close()
    # Modules and templates are read before this process becomes a user who may read less.
    with page_client(ledger.open(str(folder / "lake"))) as client:
        for path in EVERY_PAGE:
            assert client.get(path).status_code == 200
    before = contents(folder)
    for each in (folder / "lake", *(folder / "lake").rglob("*")):
        if each.is_dir():
            each.chmod(0o555)
    with as_somebody_else(), page_client(ledger.open(str(folder / "lake"))) as client:
        found = {path: client.get(path).status_code for path in EVERY_PAGE}

    assert set(found.values()) == {200}, found
    assert contents(folder) == before


def test_a_ledger_that_may_be_written_gets_no_commit(tmp_path: Path) -> None:
    lake_in(tmp_path / "lake").close()
    logs = {name: body for name, body in contents(tmp_path).items() if "/log/" in name}
    with page_client(ledger.open(str(tmp_path / "lake"))) as client:
        for path in EVERY_PAGE:
            assert client.get(path).status_code == 200
    after = {name: body for name, body in contents(tmp_path).items() if "/log/" in name}

    assert logs
    assert after == logs
