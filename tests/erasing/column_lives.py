"""Tables with personal columns at work, and everything that is kept of them, unpacked."""

from __future__ import annotations

import io
import random
from contextlib import suppress

import fastavro
import pyarrow as pa
from pyarrow import parquet

from ledger import FileChange, LedgerError, RenameColumn, Schema, Table
from ledger.model.parquet_limits import copy_to_arrow_memory
from ledger.stores import Store
from tests.erasing.lives import holding, secret, spellings
from tests.lakes import START_MILLIS, lake_on

COLUMNS = {"id": "BIGINT NOT NULL", "mail": "STRING", "kind": "STRING", "amount": "INT"}
FORMATS = ("paimon", "iceberg", "delta")


def unpacked(body: bytes) -> bytes:
    """Return what a file holds, its packed parts in the clear."""
    if body.startswith(b"Obj\x01"):
        return repr(list(fastavro.reader(io.BytesIO(body)))).encode()
    if body.startswith(b"PAR1"):
        with suppress(pa.ArrowException):
            rows = parquet.ParquetFile(copy_to_arrow_memory(body)).read(use_threads=False)
            return repr(rows.to_pylist()).encode()
    return b""


def holding_deep(store: Store, text: str) -> list[str]:
    """Return the keys below a root whose files hold a text, packed or not."""
    found = set(holding(store, text))
    wanted = {*spellings(text), repr(text)[1:-1].encode(), repr(text.encode())[2:-1].encode()}
    for key in store.walk(""):
        body = store.read(key)
        if body is not None and any(each in unpacked(body) for each in wanted):
            found.add(key)
    return sorted(found)


def bound(text: str) -> str:
    """Return a text's bytes in hex, as writers of files truncate them."""
    return text[:16].encode().hex()


class ColumnLife:
    """A ledger with a table whose columns `mail` and `kind` are personal."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self.rng = rng
        self.mails = [secret(rng) for _ in range(5)]
        # One partition's values stand in the paths of no file here.
        self.kinds = [secret(rng) for _ in range(3)]
        self.lake = lake_on(store)
        self.lake.init(erasable=True)
        self.steps = 0
        self.lake.create_database("shop")
        self.formats = rng.choice((("paimon", "iceberg"), ("iceberg", "delta")))
        options = {"ledger.personal": "mail, kind", "ledger.formats": ",".join(self.formats)}
        schema = Schema.of(COLUMNS, partition_keys=["kind"], options=options)
        self.lake.create_table("shop.people", schema)

    @property
    def table(self) -> Table:
        """The table, mostly through a warm handle."""
        if self.rng.random() < 0.3:
            self.lake = lake_on(self.store)
        return self.lake.table("shop.people")

    def file(self, name: str) -> FileChange:
        """Return a file of one person's rows."""
        low, high = sorted((self.rng.choice(self.mails), self.rng.choice(self.mails)))
        return FileChange(
            path=name,
            partition=(self.rng.choice([*self.kinds, None]),),
            schema_id=self.lake.table("shop.people").state.schema.id,
            record_count=self.rng.randint(1, 9),
            file_size_in_bytes=100,
            creation_time=START_MILLIS,
            field_ids=True,
            lower_bounds={0: "0100000000000000", 1: bound(low)},
            upper_bounds={0: "0900000000000000", 1: bound(high)},
        )

    def step(self) -> None:
        """Do something."""
        self.steps += 1
        rng, table = self.rng, self.table
        with suppress(LedgerError, IndexError):
            self._change(table, rng.randrange(10))

    def _change(self, table: Table, kind: int) -> None:
        rng, names = self.rng, [f"{self.steps}-{each}.parquet" for each in range(3)]
        if kind <= 3:
            table.append([self.file(each) for each in names[: rng.randint(1, 3)]])
        elif kind == 4:
            table.overwrite([self.file(names[0])], where={"kind": rng.choice(self.kinds)})
        elif kind == 5:
            table.delete_files([rng.choice(table.at().files).path])
        elif kind == 6:
            table.rollback(snapshot=rng.randint(1, max(1, table.state.last_snapshot_id)))
        elif kind == 7:
            table.project(rng.choice(self.formats))
        elif kind == 8:
            old = next(name for name in table.state.schema.names if name[:4] == "mail")
            table.alter([RenameColumn((old,), f"mail{self.steps}")])
        else:
            table.expire_snapshots(before=max(1, table.state.last_snapshot_id - 3))

    @property
    def mail(self) -> str:
        """The current name of the column of mails."""
        names = self.lake.table("shop.people").state.schema.names
        return next(each for each in names if each.startswith("mail"))
