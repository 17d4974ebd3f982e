"""Paimon tables that pypaimon writes, whose owner rolls back and lets snapshots expire."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.pypaimon_or_skip import AtomicType, CatalogFactory, SchemaChange
from tests.pypaimon_or_skip import Schema as PaimonSchema

COLUMNS = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("name", pa.string())])


class PaimonSource:
    """A table `s.t` in a warehouse of its own.

    Args:
        root: The warehouse.
        keyed: Whether it has a primary key; it is partitioned by `kind` otherwise.
        **options: The table's.
    """

    def __init__(self, root: Path, *, keyed: bool = False, **options: str) -> None:
        self.catalog = CatalogFactory.create({"warehouse": str(root)})
        self.catalog.create_database("s", ignore_if_exists=True)
        fields = [pa.field("id", pa.int64(), nullable=False), *list(COLUMNS)[1:]]
        schema = PaimonSchema.from_pyarrow_schema(
            pa.schema(fields),
            partition_keys=None if keyed else ["kind"],
            primary_keys=["id"] if keyed else None,
            options={"bucket": "2", **options} if keyed else options,
        )
        self.catalog.create_table("s.t", schema, ignore_if_exists=False)
        self.folder = root / "s.db/t"
        self._next = 0

    @property
    def table(self) -> Any:
        return self.catalog.get_table("s.t")

    @property
    def snapshots(self) -> list[int]:
        found = self.folder.glob("snapshot/snapshot-*")
        return sorted(int(each.name.removeprefix("snapshot-")) for each in found)

    @property
    def tags(self) -> list[str]:
        return sorted(each.name.removeprefix("tag-") for each in self.folder.glob("tag/tag-*"))

    def append(self, count: int = 2) -> None:
        table = self.table
        ids = list(range(self._next, self._next + count))
        self._next += max(1, count - 1)  # With a key, one row of the next batch is an update.
        filled = {"id": ids, "kind": ["ab"[each % 2] for each in ids]}
        names = [each.name for each in table.fields]
        types = {each.name: each.type for each in table.fields}
        arrays = []
        for name in names:
            said = str(types[name])
            wide = pa.int64() if "BIGINT" in said else pa.int32()
            kind = wide if "INT" in said else pa.string()
            values = filled.get(name) or [str(each) for each in ids]
            nullable = name != "id"
            arrays.append((pa.field(name, kind, nullable=nullable), pa.array(values).cast(kind)))
        rows = pa.Table.from_arrays(
            [each for _, each in arrays], schema=pa.schema([f for f, _ in arrays])
        )
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def alter(self, *changes: Any) -> None:
        """Change the schema, later than the newest snapshot: times in files are milliseconds."""
        time.sleep(0.002)
        self.catalog.alter_table("s.t", list(changes), ignore_if_not_exists=False)

    def add(self, name: str, kind: str = "STRING") -> None:
        self.alter(SchemaChange.add_column(name, AtomicType(kind)))

    def expire(self, earliest: int) -> None:
        """Let the snapshots before one go; manifests stay as those of tags would."""
        for each in self.snapshots:
            if each < earliest:
                (self.folder / f"snapshot/snapshot-{each}").unlink()
        (self.folder / "snapshot/EARLIEST").write_text(str(earliest))

    def life(self, seed: int, length: int) -> Any:
        """Yield after each of a few random things that an owner does."""
        rng = random.Random(seed)
        self.append()
        yield
        for step in range(length):
            getattr(self, f"_{rng.choice(_STEPS)}")(rng, step)
            yield

    def _write(self, rng: random.Random, _step: int) -> None:
        self.append(rng.randint(1, 3))

    def _add(self, rng: random.Random, step: int) -> None:
        self.add(f"c{step}", rng.choice(["INT", "STRING"]))

    def _rename(self, rng: random.Random, step: int) -> None:
        names = [each.name for each in self.table.fields if each.name not in {"id", "kind"}]
        if names:
            self.alter(SchemaChange.rename_column(rng.choice(names), f"r{step}"))

    def _set(self, rng: random.Random, step: int) -> None:
        self.alter(
            SchemaChange.set_option(f"o{rng.randint(0, 2)}", str(step)),
            SchemaChange.update_comment(f"step {step}"),
        )

    def _tag(self, rng: random.Random, step: int) -> None:
        self.table.create_tag(f"v{step}", snapshot_id=rng.choice(self.snapshots))

    def _untag(self, rng: random.Random, _step: int) -> None:
        if self.tags:
            self.table.delete_tag(rng.choice(self.tags))

    def _back(self, rng: random.Random, _step: int) -> None:
        self.table.rollback_to(rng.choice(self.snapshots))

    def _expire(self, rng: random.Random, _step: int) -> None:
        self.expire(rng.choice(self.snapshots))


_STEPS = ("write", "write", "write", "add", "rename", "set", "tag", "untag", "back", "expire")


def rows(table: Any, **options: str) -> list[str]:
    """All rows, as texts in an order of their own."""
    at = table.copy(
        {each.replace("_", "-").replace("scan-", "scan."): v for each, v in options.items()}
    )
    builder = at.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted(map(str, found.to_pylist()))


def grown(folder: Path) -> PaimonSource:
    """Return a table of three snapshots and two schemas, with a tag."""
    source = PaimonSource(folder)
    source.append()
    source.add("c1")
    source.append(3)
    source.table.create_tag("t1", snapshot_id=1)
    source.append()
    return source


def impatient(source: PaimonSource) -> PaimonSource:
    """Return the source, whose writers give up soon."""
    source.alter(SchemaChange.set_option("commit.max-retries", "1"))
    return source
