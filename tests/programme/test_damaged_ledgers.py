"""Whatever a ledger's files contain, its readers, projections and `verify` end, by typed errors.

`--long` tries all damages, `LAKELEDGER_EXAMPLES=2000` as many of each kind of file.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import pytest

from ledger import Ledger, LedgerError, Schema, SetOption, Table, ViewSchema
from ledger.cli.commands.verify import differences
from ledger.history.verifying import Subject, Verification
from ledger.history.verifying.surroundings import CatalogedTables, catalog_contradictions
from ledger.model import read_type
from ledger.model.types import DataType
from ledger.state import FOLD_VERSION
from ledger.stores import MemoryStore
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg.materialise import project as project_iceberg
from projections.paimon.materialise import project as project_paimon
from projections.source.view import VIEWS
from projections.statistics import refresh
from tests.lakes import data_file, lake_on, memory
from tests.log.long_logs import store_of
from tests.programme.mutations import DEEP, HOSTILE_VALUES
from tests.projections.source.reading_all import rows_of
from tests.thorough import examples

EXAMPLES = int(os.environ.get("LAKELEDGER_EXAMPLES", "0"))
MORE = {"table commit": 20, "catalog commit": 10}
"""The factors by which a true number is multiplied."""
TABLE = "shop.orders"
Body = bytes


@lru_cache
def ledger_bodies() -> dict[str, bytes]:
    """Return a ledger whose table has every kind of event, cache and projection."""
    store = memory()
    lake = lake_on(store)
    lake.create_database("shop", options={"a": "b"})
    row = read_type("ROW<a INT, b ARRAY<STRING>, c MAP<STRING, INT>>")
    columns: dict[str, str | DataType] = {"id": "BIGINT NOT NULL", "day": "DATE", "r": row}
    table = lake.create_table(TABLE, Schema.of(columns, partition_keys=["day"]))
    table.append([data_file(f"l{number}.parquet") for number in range(1_001)])
    for number in range(100):
        if number % 4:
            table.alter([SetOption("k", str(number))])
        else:
            table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
    for statement in STATEMENTS:
        table.sql(f"ALTER TABLE shop.orders {statement}")
    table.create_tag("t", time_retained_millis=10_000)
    table.rollback(snapshot=3)
    table.expire_snapshots(before=2)
    lake.create_view("shop.v", ViewSchema(fields=[], query="SELECT 1"))
    project_iceberg(handle_of(table))
    refresh(handle_of(table).log)
    return {key: store.read(key) or b"" for key in store.keys("")}


STATEMENTS = (
    "ADD COLUMN s STRUCT<a: INT, b: ARRAY<STRING>>",
    "RENAME COLUMN s TO s2",
    "ALTER COLUMN s2.a TYPE BIGINT",
    "ALTER COLUMN s2.a COMMENT 'c'",
    "ALTER COLUMN id DROP NOT NULL",
    "ALTER COLUMN s2 FIRST",
    "DROP COLUMN s2.b",
    "UNSET TBLPROPERTIES ('k')",
    "ADD PARTITION FIELD bucket(16, id) AS b",
    "WRITE ORDERED BY id DESC NULLS LAST",
)


def read_everything(store: MemoryStore) -> Iterator[Callable[[], object]]:
    """Yield what people and programs ask of a ledger, each on handles of its own."""

    def table() -> Table:
        return lake_on(store).table(TABLE)

    yield lambda: lake_on(store).state
    yield lambda: list(lake_on(store).events())
    yield lambda: (lake_on(store).tables("shop"), lake_on(store).view("shop.v"))
    yield lambda: table().at().files
    yield lambda: list(table().events())
    yield lambda: list(table().schemas())
    yield lambda: table().at(version=1).files
    yield lambda: table().at(snapshot=3)
    yield lambda: table().at(timestamp=0)
    yield lambda: table().at().plan("id > 7 AND day = DATE '2013-01-01'")
    yield lambda: project_iceberg(handle_of(table()))
    yield lambda: project_paimon(handle_of(table()))
    yield lambda: refresh(handle_of(table()).log)
    yield lambda: list(differences(handle_of(table())))
    yield lambda: table().alter([SetOption("mine", "1")], commit_id="id-4")
    for view in VIEWS:
        yield partial(lambda name: rows_of(table(), name), view)
    yield lambda: verify(lake_on(store))


def verify(lake: Ledger) -> None:
    """Verify the catalog and every table, as the command does."""
    cataloged_tables = CatalogedTables()
    catalog: Subject[Any, Any] = Subject("catalog", handle_of(lake).log, has_files=False)
    found = list(Verification(catalog, (), cataloged_tables.learn).run())
    for cataloged in cataloged_tables:
        table = Table(TableHandle(cataloged.identifier, cataloged.path, handle_of(lake).setting))
        subject: Subject[Any, Any] = Subject(cataloged.name, handle_of(table).log, has_files=True)
        verification: Verification[Any, Any] = Verification(subject)
        found += verification.run()
        found += catalog_contradictions(cataloged, subject, verification)
    assert all(len(str(each)) < 50_000 for each in found)


def bent(rng: random.Random, body: bytes) -> bytes:
    """Return a file with a few of its values exchanged, left out, doubled or nested deep."""
    document = json.loads(body)
    places = list(_places(document))
    for _ in range(rng.randint(1, 2)):
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder.pop(key, None)
        elif key in holder if isinstance(holder, dict) else key < len(holder):
            holder[key] = rng.choice([*HOSTILE_VALUES, DEEPER])
    text = json.dumps(document, separators=(",", ":"))
    text = text.replace(json.dumps(DEEPER), "[" * DEEP + "]" * DEEP, 1)
    if rng.random() < 0.1 and text.startswith("{"):
        text = '{"version":0,' + text[1:]
    return text.encode(errors="replace") + b"\n"


DEEPER = "deep!"


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, value in items:
        yield document, key
        yield from _places(value)


def broken(rng: random.Random, body: bytes) -> bytes:
    """Return a file with some bytes changed or cut."""
    found = bytearray(body)
    at = rng.randrange(len(found))
    match rng.randrange(4):
        case 0:
            found[at] ^= 1 << rng.randrange(8)
        case 1:
            del found[at:]
        case 2:
            del found[at : at + rng.randrange(1, 40)]
        case _:
            found[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"99999999", b"[" * DEEP))
    return bytes(found) or b" "


KINDS = {
    "ledger.json": "_ledger/ledger.json",
    "catalog commit": "^_ledger/log/",
    "table commit": "orders/_ledger/log/",
    "side file": "orders/_ledger/changes/",
    "checkpoint": r"caches/\d+/0",
    "hint": r"caches/\d+/LATEST",
    "key index": r"caches/\d+/keys/",
    "filter": r"caches/\d+/filters/",
    "run": r"caches/\d+/files/",
    "position": "orders/_ledger/(projections|statistics/position)",
    "tile": "_ledger/statistics/.*parquet",
    "Iceberg's files": "orders/metadata/",
}


@pytest.mark.law
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_ends_every_reader_by_a_typed_error(kind: str) -> None:
    keys = [key for key in ledger_bodies() if re.search(KINDS[kind], key)]
    rng = random.Random(kind)
    for number in range(EXAMPLES or examples(3 * MORE.get(kind, 1))):
        key = rng.choice(keys)
        bodies = dict(ledger_bodies())
        if "/log/" in key:
            # As the newest commit it is no broken link that is met first, but what it says.
            bodies = _cut(bodies, key)
        is_json = bodies[key].startswith(b"{")
        change = bent if is_json and rng.random() < 0.8 else broken
        bodies[key] = change(rng, bodies[key])
        _ask_everything(bodies, f"{kind} {number}: {key}: {bodies[key][:300]!r}")


def _cut(bodies: dict[str, bytes], last: str) -> dict[str, bytes]:
    """Return a ledger whose stream ends with a commit, without what was made of later ones."""
    folder = last.rpartition("/log/")[0]
    return {
        key: body
        for key, body in bodies.items()
        if not (key.startswith(f"{folder}/log/") and key > last)
        and not re.match(rf"{folder}/(caches|checkpoints|projections|statistics)/", key)
        and "/metadata/" not in key
    }


def _ask_everything(bodies: dict[str, bytes], what: str) -> None:
    for number, _ in enumerate(read_everything(MemoryStore("counting"))):
        store = store_of(bodies, "damaged")
        ask = next(each for place, each in enumerate(read_everything(store)) if place == number)
        said = ""
        try:
            ask()
        except LedgerError as error:
            said = str(error)
        except Exception as error:
            raise AssertionError(f"{what}: reader {number}: {error!r}") from error
        assert len(said) < 50_000, f"{what}: an error text that repeats its input"


LOG = "shop.db/orders/_ledger/log/"
HINT = f"shop.db/orders/_ledger/caches/{FOLD_VERSION}/LATEST"
SNAPSHOT = f"{LOG}{2:020d}.json"
_COLUMN = '"events":[{"type":"addColumn","fieldNames":["z"],"dataType":%s,"fieldId":99}]}]}'
NAMED: dict[str, tuple[str, str, str]] = {
    "no transactions": (SNAPSHOT, r'"transactions":.*', '"transactions":[]}'),
    "objects nested deep": (
        SNAPSHOT,
        r'"events":.*',
        _COLUMN % ('{"type":"ARRAY","element":' * 1_000 + '"INT"' + "}" * 1_000),
    ),
    "objects nested deeper than types may": (
        SNAPSHOT,
        r'"events":.*',
        _COLUMN % ('{"type":"ARRAY","element":' * 101 + '"INT"' + "}" * 101),
    ),
    "text nested deep": (
        SNAPSHOT,
        r'"events":.*',
        _COLUMN % json.dumps("ARRAY<" * 1_000 + "INT" + ">" * 1_000),
    ),
    "an object as partition": (SNAPSHOT, r'"partition":\[[^]]*\]', '"partition":{"day":1}'),
    "a list as partition value": (SNAPSHOT, r'"partition":\[[^]]*\]', '"partition":[[[1]]]'),
    "a bound that is no hex": (SNAPSHOT, r'"lowerBounds":{[^}]*}', '"lowerBounds":{"0":"zz"}'),
    "a file list nested deep": (SNAPSHOT, r'"files":\[.*?\]', '"files":' + "[" * DEEP + "]" * DEEP),
    "a number of 5,000 digits": (SNAPSHOT, r'"timeMillis":\d+', '"timeMillis":' + "9" * 5_000),
    "version 0 without its creation": (
        f"{LOG}{0:020d}.json",
        r'"events":.*',
        '"events":[{"type":"setOption","key":"a","value":"b"}]}]}',
    ),
    "version 0 without events": (f"{LOG}{0:020d}.json", r',"events":.*', "}]}"),
    "the catalog without transactions": (
        f"_ledger/log/{1:020d}.json",
        r'"transactions":.*',
        '"transactions":[]}',
    ),
    "a hint of 5,000 digits": (HINT, r".+", "9" * 5_000),
    "a hint of another script": (HINT, r".+", "\u0661"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_ended_readers_by_errors_of_python_ends_them_by_typed_ones(name: str) -> None:
    key, found, instead = NAMED[name]
    bodies = dict(ledger_bodies())
    if "/log/" in key:
        bodies = _cut(bodies, key)
    before = bodies[key].decode()
    after = re.sub(found, lambda _: instead, before, count=1)
    assert after != before
    _ask_everything(bodies | {key: after.encode()}, name)


def test_a_list_of_files_that_is_no_text_ends_readers_by_typed_errors() -> None:
    bodies = _cut(ledger_bodies(), SNAPSHOT)
    damaged = bodies[SNAPSHOT].replace(b".parquet", b".\xb0arquet", 1)
    assert damaged != bodies[SNAPSHOT]
    _ask_everything(bodies | {SNAPSHOT: damaged}, "no text")
