"""Both readers side by side: after each commit of a stream they come to the same bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ledger import Ledger
from ledger.events import CatalogEvent, TableEvent
from ledger.log import Codec
from ledger.state import CatalogStream, TableStream
from ledger.table_handle import handle_of
from tests.independent.elsewhere import imported_table
from tests.independent.replayer import LATER, Catalog, Table, commits
from tests.independent.states import state_bytes, state_hash

TABLES, CATALOGS = TableStream(), CatalogStream()


def compared(lines: Iterable[bytes], other: Table | Catalog) -> int:
    """Compare both readers after each commit of a stream; return how many there were."""
    stream: Any = CATALOGS if isinstance(other, Catalog) else TABLES
    codec: Codec[Any] = Codec(CatalogEvent if isinstance(other, Catalog) else TableEvent)
    builder, number = stream.builder(None), 0
    for line in lines:
        builder.commit(codec.decode(line, "a line"))
        other.fold(json.loads(line))
        mine, theirs = stream.encode_state(builder.freeze()), state_bytes(other)
        # Decoded first, so that a failure shows what differs.
        assert json.loads(theirs) == json.loads(mine), line
        assert theirs == mine, line
        number += 1
    return number


def agrees(root: Path, lake: Ledger) -> int:
    """Compare both readers at every version of every stream; return how many tables' that were."""
    catalog = Catalog()
    compared(bodies(root), catalog)
    assert state_hash(catalog) == hashlib.sha256(CATALOGS.encode_state(lake.state)).hexdigest()
    versions = 0
    for name, entry in catalog.tables.items():
        folder = root / entry["path"]
        # The chain is this one's to check.
        first, *_ = chained = list(commits(folder / "_ledger"))
        other = imported_table(first, folder / "_ledger")
        assert compared(bodies(folder), other) == len(chained)
        versions += len(chained)
        table = lake.table(".".join(name))
        assert state_hash(other) == hashlib.sha256(TABLES.encode_state(table.state)).hexdigest()
        if table.state.lists_files:
            _files_agree(other, handle_of(table).live.live_files_at_state(table.state))
    return versions


def bodies(folder: Path) -> list[bytes]:
    """Return the commits' files of a folder's stream."""
    return [each.read_bytes() for each in sorted((folder / "_ledger/log").glob("*.json"))]


def _files_agree(other: Table, live: Any) -> None:
    # As lines have them.
    assert other.files.keys() == live.keys()
    for path, change in other.files.items():
        assert change["recordCount"] == live[path].record_count
        assert list(change.get("partition", [])) == list(live[path].partition)
        said = json.loads(msgspec.json.encode(live[path]))
        assert {key: change.get(key) for key in LATER.values()} == {
            key: said.get(key) for key in LATER.values()
        }
