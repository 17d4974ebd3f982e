"""Delta logs whose beginning was cleaned up: a checkpoint of every form stands for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.projections.delta.importing.writing import clean

_FILE_KINDS: Final = ("add", "remove")
_SIDECAR: Final = pa.struct(
    [
        ("path", pa.string()),
        ("sizeInBytes", pa.int64()),
        ("modificationTime", pa.int64()),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)
_V2: Final = pa.struct([("version", pa.int64()), ("tags", pa.map_(pa.string(), pa.string()))])
_TXN: Final = pa.struct(
    [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
)
_DOMAIN: Final = pa.struct(
    [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
)

Form = Callable[[Path, int, pa.Table], None]
"""Writes a checkpoint of a version into a log's folder, given its rows."""


def classic(log: Path, version: int, rows: pa.Table) -> None:
    """Write one file."""
    pq.write_table(rows, log / f"{version:020d}.checkpoint.parquet")


def multi_part(log: Path, version: int, rows: pa.Table) -> None:
    """Write three files, each with every third action."""
    for part in range(3):
        some = rows.take(pa.array(range(part, len(rows), 3), pa.int64()))
        name = f"{version:020d}.checkpoint.{part + 1:010d}.{3:010d}.parquet"
        pq.write_table(some, log / name)


def v2_parquet(log: Path, version: int, rows: pa.Table) -> None:
    """Write a Parquet manifest under a unique name, with two sidecars."""
    pq.write_table(_with_sidecars(log, version, rows), _unique(log, version, "parquet"))


def v2_classic_name(log: Path, version: int, rows: pa.Table) -> None:
    """Write the same manifest under the name of a classic checkpoint."""
    classic(log, version, _with_sidecars(log, version, rows))


def v2_json(log: Path, version: int, rows: pa.Table) -> None:
    """Write a JSON manifest with two sidecars."""
    _write_json(log, version, _with_sidecars(log, version, rows))


def v2_json_alone(log: Path, version: int, rows: pa.Table) -> None:
    """Write a JSON manifest that lists the files itself."""
    _write_json(log, version, _with_marker(rows, version, ()))


FORMS: Final[Sequence[Form]] = (
    classic,
    multi_part,
    v2_parquet,
    v2_classic_name,
    v2_json,
    v2_json_alone,
)


def lose_beginning(
    folder: Path,
    version: int,
    form: Form,
    *,
    txns: Sequence[str] = (),
    keeps_commit: bool = True,
) -> None:
    """Let a log begin with a checkpoint of one of its versions.

    Args:
        folder: The table's folder.
        version: The version.
        form: Writes the checkpoint.
        txns: Writers with keys of their own that the checkpoint names.
        keeps_commit: Whether the commit file of that version stays.
    """
    log = folder / "_delta_log"
    for each in [*log.glob("*.checkpoint*"), *log.glob("_last_checkpoint")]:
        each.unlink()
    DeltaTable(str(folder), version=version).create_checkpoint()
    path = log / f"{version:020d}.checkpoint.parquet"
    rows = pq.read_table(path)
    clean(folder, version)
    path.unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    form(log, version, _with_more(rows, form, txns))
    if not keeps_commit:
        (log / f"{version:020d}.json").unlink()


def _with_more(rows: pa.Table, form: Form, txns: Sequence[str]) -> pa.Table:
    """Return rows with writers' keys, a domain, and the features that both forms need."""
    kinds = [name for name in rows.column_names if name not in {"txn", "domainMetadata"}]
    schema = pa.schema(
        [*(rows.schema.field(name) for name in kinds), ("txn", _TXN), ("domainMetadata", _DOMAIN)]
    )
    said = rows.to_pylist()
    is_v2 = form.__name__.startswith("v2")
    for row in said:
        if is_v2 and row.get("protocol") is not None:
            row["protocol"] = _with_features(row["protocol"])
        for kind in _FILE_KINDS:
            if row.get(kind) is not None:
                # As Spark writes them: nothing in a checkpoint changes data.
                row[kind]["dataChange"] = False
    said += [{"txn": {"appId": each, "version": 7, "lastUpdated": 9}} for each in txns]
    if is_v2:
        domain = {"domain": "owner.notes", "configuration": '{"a":1}', "removed": False}
        said.append({"domainMetadata": domain})
    return pa.Table.from_pylist(said, schema)


def _with_features(protocol: dict[str, Any]) -> dict[str, Any]:
    reading = {*(protocol.get("readerFeatures") or ()), "v2Checkpoint"}
    more = ("appendOnly", "domainMetadata", "invariants")
    writing = {*(protocol.get("writerFeatures") or ()), *more}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(reading),
        "writerFeatures": sorted({*reading, *writing}),
    }


def _with_sidecars(log: Path, version: int, rows: pa.Table) -> pa.Table:
    """Write the file actions into two sidecars; return the manifest's rows."""
    files = [
        place
        for place, row in enumerate(rows.to_pylist())
        if any(row.get(kind) is not None for kind in _FILE_KINDS)
    ]
    (log / "_sidecars").mkdir(exist_ok=True)
    found = []
    for number, some in enumerate((files[::2], files[1::2])):
        path = log / "_sidecars" / f"{UUID(int=number)}.parquet"
        kinds = [name for name in rows.column_names if name in _FILE_KINDS]
        pq.write_table(rows.take(pa.array(some, pa.int64())).select(kinds), path)
        found.append({"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 9})
    others = [place for place in range(len(rows)) if place not in set(files)]
    return _with_marker(rows.take(pa.array(others, pa.int64())), version, found)


def _with_marker(rows: pa.Table, version: int, sidecars: Sequence[dict[str, Any]]) -> pa.Table:
    markers = {"checkpointMetadata": _V2, "sidecar": _SIDECAR}
    kinds = [each for each in rows.schema if each.name not in markers]
    schema = pa.schema([*kinds, *markers.items()])
    said = [
        {"checkpointMetadata": {"version": version}},
        *rows.to_pylist(),
        *({"sidecar": each} for each in sidecars),
    ]
    return pa.Table.from_pylist(said, schema)


def _write_json(log: Path, version: int, rows: pa.Table) -> None:
    lines = []
    for row in rows.to_pylist():
        ((kind, action),) = ((kind, each) for kind, each in row.items() if each is not None)
        lines.append(json.dumps({kind: _as_json(action)}))
    _unique(log, version, "json").write_text("\n".join(lines) + "\n")


def _as_json(action: dict[str, Any]) -> dict[str, Any]:
    found = {key: each for key, each in action.items() if each is not None}
    for key in ("partitionValues", "configuration", "tags"):
        if isinstance(found.get(key), list):
            found[key] = dict(found[key])
    if "format" in found:
        found["format"] = {**found["format"], "options": dict(found["format"]["options"] or ())}
    for parsed in ("stats_parsed", "partitionValues_parsed"):
        found.pop(parsed, None)
    return found


def _unique(log: Path, version: int, kind: str) -> Path:
    return log / f"{version:020d}.checkpoint.{UUID(int=version)}.{kind}"
