from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ledger import SetOption, Table
from ledger import open as open_ledger
from ledger.cli.commands.verify import differences
from ledger.history.verifying import Finding
from ledger.log import digest
from ledger.state import FOLD_VERSION
from ledger.table_handle import handle_of
from tests.lakes import data_file

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"


@pytest.fixture
def lake(shop: Run, tmp_path: Path) -> Path:
    """A ledger's folder; its table has 103 commits and a checkpoint."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(102):
        table.alter([SetOption("k", str(number))])
    return tmp_path / "lake"


def stream(lake: Path) -> Path:
    return lake / "shop.db" / "orders" / "_ledger"


def commit(lake: Path, version: int) -> Path:
    return stream(lake) / "log" / f"{version:020d}.json"


def test_a_healthy_ledger_ends_with_the_heads_to_keep_elsewhere(shop: Run, lake: Path) -> None:
    ran = shop("verify")
    head = digest(commit(lake, 102).read_bytes())

    assert (ran.code, ran.err[:22]) == (0, "all 2 logs are intact;")
    lines = ran.out.strip().splitlines()
    assert lines[-1] == f"{TABLE}  102:{head}"
    assert re.fullmatch(r"catalog  1:sha256:[0-9a-f]{64}", lines[-2])
    assert len(lines) == 2
    assert shop("verify", TABLE).out.strip() == lines[-1]


def test_the_head_that_was_printed_is_what_expect_takes(shop: Run, lake: Path) -> None:
    printed = [line.split()[-1] for line in shop("verify").out.strip().splitlines()]
    assert shop("verify", "--expect", printed[0], "--expect", printed[1]).code == 0

    open_ledger(str(lake)).table(TABLE).alter([SetOption("k", "later")])
    assert shop("verify", TABLE, "--expect", printed[1]).code == 0

    for version in (102, 103):
        commit(lake, version).unlink()
    assert shop("verify").code == 0
    ran = shop("verify", TABLE, "--expect", printed[1], "--output", "json")
    assert ran.code == 6
    assert [each["version"] for each in ran.document["findings"]] == [102]
    assert "the log ends at 101" in ran.err


def test_damage_names_the_version_the_file_and_what_to_do(shop: Run, lake: Path) -> None:
    path = commit(lake, 40)
    path.write_bytes(path.read_bytes().replace(b'"value":"39"', b'"value":"99"'))

    ran = shop("verify", "--output", "json")

    assert ran.code == 6
    document = ran.document
    assert not document["sound"]
    first = document["findings"][0]
    assert (first["stream"], first["kind"], first["version"]) == (TABLE, "damage", 40)
    assert first["file"] == path.relative_to(lake).as_posix()
    assert "backup" in first["advice"]
    assert ran.err.count("\n") == 1
    assert f"{TABLE} version 40" in ran.err
    assert "damage: shop.orders, version 40" in shop("verify").out


def test_a_damaged_catalog_does_not_hide_its_tables(shop: Run, lake: Path) -> None:
    (lake / "_ledger" / "log" / f"{9:020d}.json").write_text("{}")
    commit(lake, 7).unlink()

    found = shop("verify", "--output", "json").document["findings"]

    assert {(each["stream"], each["version"]) for each in found} >= {("catalog", 2), (TABLE, 7)}


def test_a_missing_cache_is_reported_and_passes_and_a_wrong_one_fails(
    shop: Run, lake: Path
) -> None:
    checkpoint = stream(lake) / "caches" / str(FOLD_VERSION) / f"{100:020d}.json"
    body = checkpoint.read_bytes()
    checkpoint.unlink()
    ran = shop("verify", "--output", "json")
    assert (ran.code, ran.document["sound"]) == (0, True)
    assert [each["kind"] for each in ran.document["findings"]] == ["absent"]

    checkpoint.write_bytes(body.replace(b'"99"', b'"97"'))
    ran = shop("verify")
    assert ran.code == 6
    assert "lakeledger verify --repair" in ran.err


def test_repair_restores_the_caches_and_no_log(shop: Run, lake: Path) -> None:
    before = {each: each.read_bytes() for each in lake.rglob("*.*") if each.is_file()}
    shutil.rmtree(stream(lake) / "caches")

    ran = shop("verify", "--repair", "--output", "json")

    assert ran.code == 0
    assert all(each["repaired"] for each in ran.document["findings"])
    assert {each: each.read_bytes() for each in before} == before
    assert shop("verify", "--output", "json").document["findings"] == []


def test_repair_does_not_hide_damage_that_it_cannot_mend(shop: Run, lake: Path) -> None:
    commit(lake, 30).unlink()

    ran = shop("verify", "--repair")

    assert ran.code == 6
    assert "version 30" in ran.err


def test_a_table_in_the_catalog_without_its_stream_is_found(shop: Run, lake: Path) -> None:
    shutil.rmtree(lake / "shop.db" / "orders")

    ran = shop("verify")

    assert ran.code == 6
    assert "has no stream" in ran.err
    # Verifying did not begin the table anew.
    assert not (lake / "shop.db" / "orders" / "_ledger" / "log").exists()


def test_a_dropped_table_is_looked_at_as_well(shop: Run, lake: Path) -> None:
    open_ledger(str(lake)).drop_table(TABLE)
    assert "shop.orders (dropped)  103:sha256:" in shop("verify").out
    assert shop("verify", TABLE).code == 3

    commit(lake, 50).unlink()
    assert shop("verify").code == 6


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["shop.nothing"], 3, "shop.nothing does not exist"),
        (["--expect", "abc"], 1, "is no head"),
    ],
)
def test_each_mistake_has_its_own_error(
    shop: Run, lake: Path, options: list[str], code: int, said: str
) -> None:
    del lake
    ran = shop("verify", *options)

    assert (ran.code, ran.out, said in ran.err) == (code, "", True), ran.err


def test_projections_are_compared_and_rebuilt_through_their_entry_points(
    shop: Run, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(tmp_path / "offered", monkeypatch)
    table: Table = open_ledger(str(lake)).table(TABLE)
    from projections.paimon.materialise import project

    project(handle_of(table))
    assert shop("verify").code == 0
    schema = lake / "shop.db" / "orders" / "schema" / "schema-3"
    body = schema.read_bytes()
    schema.unlink()

    ran = shop("verify", "--output", "json")
    assert ran.code == 6
    assert [(each["kind"], each["file"]) for each in ran.document["findings"]] == [
        ("derived", "schema/schema-3")
    ]
    assert shop("verify", "--repair").code == 0
    assert schema.read_bytes() == body
    assert shop("verify").code == 0


def _offer(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site / "offered-0.0.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 0.0.0\n")
    (folder / "entry_points.txt").write_text(
        "[lakeledger.verifications]\npaimon = projections.paimon.materialise\n"
    )
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["paimon", "iceberg", "statistics"])
def test_a_log_cut_below_what_was_made_of_it_is_damage(shop: Run, lake: Path, name: str) -> None:
    table = open_ledger(str(lake)).table(TABLE)
    table.append([data_file("a.parquet")])
    if name == "statistics":
        assert shop("stats", TABLE).code == 0
    else:
        table.project(name)
    assert shop("verify").code == 0
    commit(lake, 103).unlink()

    ran = shop("verify", "--output", "json")

    assert ran.code == 6
    (found,) = [each for each in ran.document["findings"] if each["kind"] == "damage"]
    assert found["file"] == commit(lake, 103).relative_to(lake).as_posix()
    assert f"{name}: " in found["what"]
    assert "version 103" in found["what"]


HINTS = {
    "iceberg": ["metadata/version-hint.text"],
    "paimon": ["snapshot/LATEST", "snapshot/EARLIEST"],
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("name", "hint"), [(n, h) for n, hints in HINTS.items() for h in hints])
def test_a_byte_flipped_in_a_hint_is_found_and_restored(
    shop: Run, lake: Path, name: str, hint: str
) -> None:
    table = open_ledger(str(lake)).table(TABLE)
    for number in range(3):
        table.append([data_file(f"{number}.parquet")])
        table.project(name)
    path = lake / "shop.db" / "orders" / hint
    whole = path.read_bytes()
    assert shop("verify").code == 0

    for place in range(len(whole)):
        for bit in range(8):
            broken = bytearray(whole)
            broken[place] ^= 1 << bit
            path.write_bytes(bytes(broken))
            found = [*verifications(table, name)]
            assert [each.file for each in found if each.fails] == [hint], bytes(broken)
    assert shop("verify", "--repair").code == 0
    assert path.read_bytes() == whole


def verifications(table: Table, name: str) -> list[Finding]:
    return dict(differences(handle_of(table)))[name]


@pytest.mark.usefixtures("installed")
def test_a_hint_that_leads_further_or_is_missing_is_none_of_our_business(
    shop: Run, lake: Path
) -> None:
    table = open_ledger(str(lake)).table(TABLE)
    for number in range(2):
        table.append([data_file(f"{number}.parquet")])
    table.project("iceberg")
    position = stream(lake) / "projections" / "iceberg.json"
    before = position.read_bytes()
    table.append([data_file("later.parquet")])
    table.project("iceberg")
    # As a run that was killed before it could say how far it came.
    position.write_bytes(before)
    hint = lake / "shop.db" / "orders" / "metadata" / "version-hint.text"
    assert (hint.parent / f"v{hint.read_text()}.metadata.json").exists()
    assert shop("verify").code == 0

    table.project("paimon")
    assert shop("verify").code == 0
    (lake / "shop.db" / "orders" / "snapshot" / "LATEST").unlink()
    assert shop("verify").code == 0


@pytest.fixture
def with_data(shop: Run, lake: Path) -> list[Path]:
    """Data files: two live, one of a tagged snapshot, one of an expired one."""
    from pyarrow import parquet

    folder = lake / "shop.db" / "orders" / "day=2013-01-01"
    folder.mkdir()
    paths = [folder / f"{number}.parquet" for number in range(4)]
    table = open_ledger(str(lake)).table(TABLE)
    for number, path in enumerate(paths):
        parquet.write_table(pa.table({"id": pa.array(range(number + 1), pa.int64())}), path)
        assert shop("add-files", TABLE, path).code == 0
    table.delete_files(["day=2013-01-01/0.parquet"])
    table.create_tag("kept")
    table.delete_files(["day=2013-01-01/1.parquet"])
    table.expire_snapshots(before=6)
    return paths


def test_data_files_are_looked_at_where_a_snapshot_holds_them(
    shop: Run, with_data: list[Path]
) -> None:
    assert shop("verify", "--data").code == 0
    with_data[0].unlink()
    assert shop("verify", "--data").code == 0

    for path in with_data[1:]:
        path.unlink()
    assert shop("verify").code == 0
    ran = shop("verify", "--data", "--output", "json")
    assert ran.code == 6
    found = ran.document["findings"]
    assert [(each["kind"], each["file"], each["what"]) for each in found] == [
        ("data", f"day=2013-01-01/{number}.parquet", "the data file is missing")
        for number in (1, 2, 3)
    ]


def test_a_data_file_of_another_size_or_other_rows_is_found(
    shop: Run, with_data: list[Path]
) -> None:
    from pyarrow import parquet

    with_data[2].write_bytes(with_data[2].read_bytes() + b"x")
    size = with_data[3].stat().st_size
    parquet.write_table(pa.table({"id": pa.array(range(3), pa.int64())}), with_data[3])
    body = with_data[3].read_bytes()
    # As long as before, by a longer beginning that nothing points to.
    assert len(body) <= size
    with_data[3].write_bytes(body[:4] + b"\0" * (size - len(body)) + body[4:])

    found = shop("verify", TABLE, "--data", "--output", "json").document["findings"]

    said = {each["file"]: each["what"] for each in found}
    assert "bytes, and is recorded with" in said["day=2013-01-01/2.parquet"]
    assert "has 3 rows, and is recorded with 4" in said["day=2013-01-01/3.parquet"]


def test_no_server_is_asked_for_data_files(shop: Run, lake: Path) -> None:
    table = open_ledger(str(lake)).table(TABLE)
    table.append([data_file("http://127.0.0.1:9/a.parquet")])

    (found,) = shop("verify", "--data", "--output", "json").document["findings"]
    assert "http://127.0.0.1:9/a.parquet was not opened" in found["what"]


def test_a_default_missing_from_the_delta_log_is_reported_and_fails_nothing(shop: Run) -> None:
    words = ("--column", "id BIGINT", "--column", "n INT DEFAULT 7", "--option")
    assert shop("create", "shop.counted", *words, "ledger.formats=delta").code == 0
    assert shop("project", "delta", "shop.counted").code == 0

    assert "the log is intact" in shop("verify", "shop.counted").err
    ran = shop("verify", "shop.counted", "--output", "json")

    assert ran.code == 0
    (found,) = ran.document["findings"]
    assert found["kind"] == "inexpressible"
    assert "default 7 of column n" in found["what"]


def test_a_file_that_the_ledger_did_not_project_is_kept_and_the_advice_says_so(
    shop: Run, lake: Path
) -> None:
    assert shop("project", "iceberg", TABLE).code == 0
    (stray,) = [each / "other.avro" for each in lake.glob("shop.db/*/metadata")]
    stray.write_text("not ours")
    for words in ((), ("--repair",)):
        ran = shop("verify", TABLE, *words, "--output", "json")
        assert ran.code == 0
        (found,) = ran.document["findings"]
        assert (found["kind"], found["file"]) == ("foreign", "metadata/other.avro")
        assert "deletes it only if an interrupted projection left it" in found["advice"]
    assert stray.read_text() == "not ours"
