"""Files that pack well are read, a block that unpacks to too much and a text too deep are not."""

from __future__ import annotations

import io
from collections.abc import Callable

import fastavro
import pytest

from ledger import Identifier, LedgerError, TooLargeError
from ledger.model import parse_type, read_type
from ledger.sql.statement import requested_changes
from projections.manifest_files.container import read_container
from tests.programme.foreign_bombs import AVROS

UNPACKED_BY_FASTAVRO = ("deflate", "bzip2", "xz", "zstandard", "snappy")


@pytest.mark.parametrize("codec", UNPACKED_BY_FASTAVRO)
def test_a_file_that_packs_well_is_read_as_others_read_it(codec: str) -> None:
    """A wide table whose statistics are alike in every file: 30 MB that pack well."""
    fields = [{"name": "path", "type": "string"}, {"name": "null_counts", "type": "bytes"}]
    schema = {"type": "record", "name": "entry", "fields": fields}
    records = [
        {"path": f"data/{number}.parquet", "null_counts": b"\0" * 3_000} for number in range(10_000)
    ]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec)
    body = out.getvalue()

    assert len(body) < 3_000_000
    assert list(read_container(body, "manifest")) == records


def test_a_block_that_is_too_big_is_named() -> None:
    body = AVROS["zeros_in_bzip2"]()
    with pytest.raises(TooLargeError, match=r"bomb: .* 67108864"):
        list(read_container(body, "bomb"))


DEPTH = 1_500
TEXTS: dict[str, Callable[[], object]] = {
    "type": lambda: parse_type("ARRAY<" * DEPTH + "INT" + ">" * DEPTH),
    "SQL type": lambda: read_type("array<" * DEPTH + "int" + ">" * DEPTH),
    "statement": lambda: requested_changes(
        f"ALTER TABLE a.b ADD COLUMN c {'ARRAY<' * DEPTH}INT{'>' * DEPTH}", Identifier("a", "b")
    ),
    "transform": lambda: requested_changes(
        f"ALTER TABLE a.b ADD PARTITION FIELD {'bucket(' * DEPTH}c{')' * DEPTH}",
        Identifier("a", "b"),
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_nested_without_an_end_is_refused(what: str) -> None:
    with pytest.raises(LedgerError):
        TEXTS[what]()
