"""Random lives of Iceberg tables that hold what a projection finds hard."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from ledger import (
    AddPartitionField,
    AlreadyExistsError,
    CommitConflictError,
    FileChange,
    InvalidInputError,
    NotFoundError,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    Schema,
    SetOption,
    SnapshotPlan,
    SortColumn,
    Table,
    UpdatePartitionSpec,
)
from ledger.model import PartitionValue, transform_of
from ledger.model.transforms import field_types
from ledger.state import TableState
from tests.histories import random_changes
from tests.log.test_group_commit import Crowd

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "price": "DECIMAL(9, 2)",
    "n": "INT",
    "name": "STRING",
    "raw": "BYTES",
    "ok": "BOOLEAN",
    "rate": "DOUBLE",
}
_TRANSFORMS = ("identity", "bucket[4]", "truncate[3]", "day", "month", "year", "hour")
_VALUES: dict[str, tuple[PartitionValue, ...]] = {
    "DATE": ("2013-01-02", "1969-12-31"),
    "TIMESTAMP": ("2013-01-02T03:04:05.678901", "1960-01-02T03:04:05"),
    "DECIMAL": ("1.50", "-3.25", "0.00"),
    "STRING": ("a b", "ü%#", ""),
    "VARCHAR": ("a b", "ü%#", ""),
    "BINARY": ("00ff", ""),
    "VARBINARY": ("00ff", ""),
    "BOOLEAN": (True, False),
    "DOUBLE": ("1.5", "NaN", "-0.0"),
}

Work = Callable[[Table], object]


def hard_life(seed: int, steps: int = 35) -> Table:
    """Return a table of Iceberg's alone, with grouped commits, layouts and format versions."""
    rng = random.Random(seed)
    options = {"ledger.formats": "iceberg", "format-version": str(1 + seed % 3)}
    crowd = Crowd(Schema.of(COLUMNS, options=options))
    live_on(crowd, rng, steps)
    return crowd.table


def live_on(crowd: Crowd, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        if rng.random() < 0.1:
            asked = crowd.asks(*(_quiet(rng.randrange(1 << 30)) for _ in range(4)))
            for each in asked:
                each.result(0)
        else:
            _quiet(rng.randrange(1 << 30))(crowd.table)


def _quiet(seed: int) -> Work:
    return lambda table: try_step(table, random.Random(seed))


def try_step(table: Table, rng: random.Random) -> None:
    """Do something to a table, unless it is refused."""
    try:
        step(table, rng)
    except (InvalidInputError, NotFoundError, AlreadyExistsError, CommitConflictError):
        return


def step(table: Table, rng: random.Random) -> None:
    """Do something to a table: a snapshot as often as anything else."""
    (_snapshot if rng.random() < 0.5 else _change)(table, rng)


def _change(table: Table, rng: random.Random) -> None:
    state = table.state
    some = rng.randint(state.earliest_snapshot_id, max(1, state.last_snapshot_id))
    match rng.randrange(8):
        case 0 | 1:
            table.alter(random_changes(rng, state.schema, length=rng.randrange(1, 3)))
        case 2 | 3:
            table.alter([_layout(rng, state)])
        case 4:
            table.alter([_option(rng)])
        case 5:
            table.create_tag(f"t{rng.randrange(3)}", snapshot=some)
        case 6:
            table.delete_tag(f"t{rng.randrange(3)}")
        case _:
            table.expire_snapshots(before=some)


def _snapshot(table: Table, rng: random.Random) -> None:
    state = table.state
    match rng.randrange(10):
        case 0:
            table.overwrite(files(state, rng))
        case 1:
            table.delete_files([each.path for each in table.at().files])
        case 2 | 3:
            table.delete_files(_some_live(table, rng))
        case 4:
            plan = SnapshotPlan("COMPACT", tuple(files(state, rng)), delete=_some_live(table, rng))
            table.commit_snapshot(plan)
        case 5:
            table.commit_snapshot(SnapshotPlan("ANALYZE"))
        case 6:
            some = rng.randint(state.earliest_snapshot_id, max(1, state.last_snapshot_id))
            table.rollback(snapshot=some)
        case _:
            table.append(files(state, rng))


def _some_live(table: Table, rng: random.Random) -> tuple[str, ...]:
    live = [each.path for each in table.at().files]
    return tuple(rng.sample(live, min(len(live), 3)))


def _option(rng: random.Random) -> SetOption:
    match rng.randrange(3):
        case 0:
            return SetOption("write.metadata.previous-versions-max", str(rng.randrange(8)))
        case 1:
            return SetOption("format-version", str(rng.randrange(1, 4)))
        case _:
            return SetOption("ledger.formats", rng.choice(("iceberg", "paimon,iceberg")))


def _layout(rng: random.Random, state: TableState) -> UpdatePartitionSpec | ReplaceSortOrder:
    names = [each.name for each in state.schema.fields]
    if rng.random() < 0.2:
        return ReplaceSortOrder((SortColumn((rng.choice(names),)),))
    there = [each.name for each in state.spec.fields]
    match rng.randrange(3 if there else 1):
        case 1:
            return UpdatePartitionSpec(updates=(RemovePartitionField(rng.choice(there)),))
        case 2:
            name = f"p {rng.randrange(9)}"
            return UpdatePartitionSpec(updates=(RenamePartitionField(rng.choice(there), name),))
        case _:
            added = AddPartitionField((rng.choice(names),), rng.choice(_TRANSFORMS))
            return UpdatePartitionSpec(updates=(added,), set_default=rng.random() < 0.9)


def files(state: TableState, rng: random.Random) -> Iterator[FileChange]:
    """Yield data files, and now and then position deletes, of any spec that still can be used."""
    types = field_types(state.schema)
    usable = [
        spec
        for spec in state.specs
        if all(each.source_id in types or each.transform == "void" for each in spec.fields)
    ]
    for number in range(rng.randrange(1, 5)):
        spec = state.spec if rng.random() < 0.8 or not usable else rng.choice(usable)
        if spec not in usable:
            continue
        values: list[PartitionValue] = []
        for each in spec.fields:
            source = types.get(each.source_id)
            if each.transform == "void" or source is None or rng.random() < 0.2:
                values.append(None)
                continue
            kind = transform_of(each.transform).result_type(source)
            values.append(rng.choice(_VALUES.get(kind.root, (1, 2, 3))))
        has_deletes = state.schema.options["format-version"] != "1" and rng.random() < 0.1
        yield FileChange(
            path=f"f {rng.randrange(1 << 40)}#{number}.parquet",
            partition=tuple(values),
            spec_id=spec.spec_id,
            schema_id=state.schema.id,
            record_count=rng.randrange(1, 9),
            file_size_in_bytes=rng.randrange(1, 99),
            content="position-deletes" if has_deletes else "data",
            field_ids=rng.random() < 0.9,
        )
