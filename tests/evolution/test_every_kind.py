"""Each kind of event has all that a kind must have: this walks them, and misses none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ledger import DamagedLogError, FileChange, UpgradeRequiredError
from ledger.decide import in_words
from ledger.events import CatalogEvent, ChangesReference, ListingEvent, TableEvent
from ledger.files import event_files
from ledger.log import Codec, Commit, Layout, Transaction, encode
from tests.cli.test_phrases import CASES
from tests.evolution.born import LIVES
from tests.evolution.test_born_laws import changed, drop, exchange, more, places
from tests.evolution.whole_events import whole
from tests.independent.elsewhere import FromDelta, FromIceberg, FromPaimon
from tests.independent.replayer import Catalog, Table
from tests.lakes import memory

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/data/kinds.jsonl"
FORMAT = (ROOT / "ledger/FORMAT.md").read_text()
OF_TABLES, OF_CATALOGS = get_args(TableEvent), get_args(CatalogEvent)
KINDS: dict[type, str] = {
    each: str(each.__struct_config__.tag) for each in dict.fromkeys((*OF_TABLES, *OF_CATALOGS))
}
TABLES, CATALOGS = Codec[TableEvent](TableEvent), Codec[CatalogEvent](CatalogEvent)
ROWS = [
    (re.findall(r"[a-z][A-Za-z]+", row.split("|")[1]), row)
    for row in FORMAT.splitlines()
    if row.startswith("| ")
]


def event_of_each() -> Iterator[Any]:
    """Yield the changes that phrases and imported tables are tested with, and one with all keys."""
    lives = (event for events in LIVES.values() for each in events for event in each)
    for event in (*(each for each, _ in CASES), *lives, *map(whole, KINDS)):
        if type(event) in KINDS:
            yield event


def line(event: Any) -> bytes:
    transaction = Transaction(id="t", asked=64 * "0", events=(event,))
    return encode(Commit(format=3, version=0, time_millis=1, transactions=(transaction,)))


def decoded(body: bytes, kind: type) -> Commit[Any]:
    """Return what a line says, its lists of files as well."""
    commit: Commit[Any] = (TABLES if kind in OF_TABLES else CATALOGS).decode(body, "file")
    for event in commit.transactions[0].events:
        if isinstance(event, ListingEvent):
            event_files(memory(), Layout("t"), replace(event, changes=UNSET))
    return commit


def golden() -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for each in GOLDEN.read_bytes().splitlines(keepends=True):
        (event,) = json.loads(each)["transactions"][0]["events"]
        found.setdefault(event["type"], []).append(each)
    return found


def test_every_kind_has_bytes_that_are_frozen() -> None:
    """To freeze those of a new kind, give it a in_words, and add the lines that are missing."""
    lines = [line(each) for each in event_of_each()]
    kept = {each for some in golden().values() for each in some}
    assert golden().keys() == set(KINDS.values())
    assert kept == set(lines)


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_key_of_a_kind_and_of_files_stands_in_bytes_that_are_frozen(kind: type) -> None:
    said = [json.loads(each)["transactions"][0]["events"][0] for each in golden()[KINDS[kind]]]
    keys = {each.encode_name for each in msgspec.structs.fields(kind)}
    assert keys == {key for each in said for key in each} - {"type"}
    if "files" in keys:
        of_files = {each.encode_name for each in msgspec.structs.fields(FileChange)}
        assert of_files == {key for each in said for file in each.get("files", ()) for key in file}


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_kind_is_written_as_it_was_read_and_has_a_phrase(kind: type) -> None:
    for each in golden()[KINDS[kind]]:
        commit = decoded(each, kind)
        assert encode(commit) == each
        assert in_words(commit.transactions[0].events[0])


@pytest.mark.parametrize("change", [drop, exchange, more])
@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_fault_in_an_event_is_reported_as_damage_or_as_newer(
    kind: type, change: Callable[[Any, Any], None]
) -> None:
    refused = 0
    for each in golden()[KINDS[kind]]:
        for path in places(json.loads(each)):
            try:
                decoded(changed(each, path, change), kind)
            except (DamagedLogError, UpgradeRequiredError):
                refused += 1
    assert refused


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_a_key_that_no_kind_has_asks_for_an_upgrade(kind: type) -> None:
    for each in golden()[KINDS[kind]]:
        body = json.loads(each)
        body["transactions"][0]["events"][0]["unheardOf"] = 1
        with pytest.raises(UpgradeRequiredError):
            decoded(json.dumps(body).encode(), kind)


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_kind_has_a_line_in_the_format_that_names_its_keys(kind: type) -> None:
    tag = KINDS[kind]
    rows = " ".join(row for names, row in ROWS if tag in names)
    assert rows
    # A reference to another row or table is named there.
    known = f"{rows} {FORMAT}" if "the same" in rows or "the keys of" in rows else rows
    keys = msgspec.structs.fields(kind)
    assert [k.encode_name for k in keys if not re.search(rf"\b{k.encode_name}\b", known)] == []


@pytest.mark.parametrize(
    ("part", "begins"),
    [
        (FileChange, "A file change is "),
        (Transaction, "| id |"),
        (Commit, "| format |"),
        (ChangesReference, "`files` holds the file changes"),
    ],
)
def test_every_key_that_is_no_events_has_a_place_in_the_format(part: type, begins: str) -> None:
    # A paragraph, or the table around a row.
    (place,) = (each for each in FORMAT.split("\n\n") if f"\n{begins}" in f"\n{each}")
    keys = [each.encode_name for each in msgspec.structs.fields(part)]
    assert [key for key in keys if not re.search(rf"\b{key}\b", place)] == []


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_kind_is_folded_by_a_reader_of_the_format_alone(kind: type) -> None:
    readers: list[type] = [*[Table, FromIceberg, FromPaimon, FromDelta] * (kind in OF_TABLES)]
    readers += [Catalog] * (kind in OF_CATALOGS)
    assert any(hasattr(each, KINDS[kind]) for each in readers)
