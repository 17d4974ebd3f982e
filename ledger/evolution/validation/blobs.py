"""Rules of columns that live in files of their own (BLOB, VECTOR), and of row tracking."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.evolution.columns.directives import is_blob
from ledger.evolution.options.reading import FILE_FORMATS
from ledger.evolution.refusals import argument, runtime, state
from ledger.evolution.validation.merging import aggregate_function
from ledger.evolution.validation.subject import Check, Subject, contains_root


def _nesting(subject: Subject) -> None:
    for column in subject.unusual:
        # A more telling rule speaks of shredded maps later.
        if subject.is_shredded(column.name):
            continue
        if not is_blob(column.type) and contains_root(column.type, "BLOB"):
            raise argument(
                f"column {column.name} holds BLOBs too deep: only BLOB, ARRAY of BLOB and "
                "MAP to BLOB can be columns"
            )


def _listed(subject: Subject) -> None:
    for name in _exactly(subject, "blob-field"):
        if name not in subject.columns or not is_blob(subject.columns[name].type):
            raise argument(f"option blob-field names {name}, which is not a BLOB column")
    descriptors = set(_inline(subject, "blob-descriptor-field"))
    for key in ("blob-descriptor-field", "blob-view-field"):
        for name in _inline(subject, key):
            if name not in subject.columns or subject.columns[name].type.root != "BLOB":
                raise argument(f"option {key} names {name}, which is not a BLOB column")
    both = descriptors & set(_inline(subject, "blob-view-field"))
    if both:
        raise argument(f"columns {sorted(both)} are listed as blob descriptors and as blob views")


def _exactly(subject: Subject, key: str) -> tuple[str, ...]:
    listed = subject.options.text(key)
    return () if listed is None else tuple(each.strip() for each in listed.split(","))


def _inline(subject: Subject, key: str) -> tuple[str, ...]:
    if key == "blob-descriptor-field" and subject.options.text(key) is None:
        return subject.options.names("blob.stored-descriptor-fields")
    return subject.options.names(key)


def managed_blobs(subject: Subject) -> tuple[str, ...]:
    """Return the columns whose BLOBs are kept in files of their own."""
    inline = {
        name
        for key in ("blob-descriptor-field", "blob-view-field")
        for name in _inline(subject, key)
    }
    return tuple(
        each.name for each in subject.unusual if is_blob(each.type) and each.name not in inline
    )


def _with_primary_key(subject: Subject) -> None:
    managed = managed_blobs(subject)
    if not subject.has_primary_key or not managed:
        return
    for what, names in _key_roles(subject):
        if set(names) & set(managed):
            raise argument(f"BLOB columns {sorted(set(names) & set(managed))} cannot be {what}")
    options = subject.options
    if options.merge_engine == "aggregation":
        raise argument("BLOB columns do not go with merge-engine aggregation")
    if options.changelog_producer != "none":
        raise argument("BLOB columns of a primary-key table need changelog-producer none")
    if options.text("data-file.external-paths") is not None:
        raise argument("BLOB columns of a primary-key table do not go with external paths")
    if options.flag("pk-clustering-override"):
        raise argument("BLOB columns of a primary-key table do not go with pk-clustering-override")
    if options.merge_engine == "partial-update" and not options.ignores_delete:
        _check_retractions(subject, managed)


def _check_retractions(subject: Subject, managed: tuple[str, ...]) -> None:
    protected = {
        name
        for key, value in subject.options.values.items()
        if key.startswith("fields.") and key.endswith(".sequence-group")
        for name in value.split(",")
    }
    for name in managed:
        function = aggregate_function(subject, name)
        if name not in protected or function in {None, "last_value"}:
            continue
        if not subject.options.flag(f"fields.{name}.ignore-retract"):
            raise argument(
                f"BLOB column {name} cannot be aggregated by {function}: retractions carry no "
                f"BLOBs; set fields.{name}.ignore-retract=true"
            )


def _key_roles(subject: Subject) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "primary keys", subject.schema.primary_keys
    yield "bucket keys", subject.bucket_keys
    yield "sequence fields", subject.sequence_fields


CHECKS: tuple[Check, ...] = (_nesting, _listed, _with_primary_key)
"""The rules of BLOB columns by themselves."""


def vector_fields(subject: Subject) -> None:
    """Check that option `vector-field` names VECTOR columns.

    Raises:
        InvalidChangeError: ILLEGAL_STATE or ILLEGAL_ARGUMENT.
    """
    listed = (subject.options.text("vector-field") or "").strip()
    names = listed.split(",") if listed else []
    for name in names:
        column = subject.columns.get(name)
        if column is not None and column.type.root != "VECTOR":
            raise state(f"option vector-field: {name} is {column.type.root}, not a VECTOR")
    unknown = [name for name in names if name not in subject.columns]
    if unknown:
        raise argument(f"option vector-field names {unknown}, which are not columns")


def row_tracking(subject: Subject) -> None:
    """Check what row tracking, data evolution and columns in files of their own need.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options = subject.options
    tracks = options.flag("row-tracking.enabled")
    if tracks and subject.has_primary_key:
        raise argument("option row-tracking.enabled does not go with a primary key")
    if tracks and options.bucket != -1:
        raise argument("option row-tracking.enabled needs bucket=-1")
    if options.flag("data-evolution.enabled"):
        if not tracks:
            raise argument("option data-evolution.enabled needs row-tracking.enabled=true")
        if options.flag("clustering.incremental"):
            raise argument("option data-evolution.enabled does not go with clustering.incremental")
    blobs = [each.name for each in subject.unusual if is_blob(each.type)]
    if blobs:
        if not subject.has_primary_key and not options.flag("data-evolution.enabled"):
            raise argument(f"BLOB columns {blobs} need data-evolution.enabled=true")
        _beside_others(subject, blobs)
    vector_format = options.text("vector.file.format")
    if vector_format is not None:
        _vector_files(subject, vector_format)


def _vector_files(subject: Subject, name: str) -> None:
    if name.lower() not in FILE_FORMATS:
        raise runtime(f"option vector.file.format={name!r} is unknown")
    vectors = [each.name for each in subject.schema.fields if each.type.root == "VECTOR"]
    _beside_others(subject, vectors)
    if not subject.options.flag("data-evolution.enabled"):
        raise argument("option vector.file.format needs data-evolution.enabled=true")


def _beside_others(subject: Subject, names: list[str]) -> None:
    if len(subject.schema.fields) <= len(names):
        raise argument(f"columns {names} need at least one ordinary column beside them")
    keys = set(names) & set(subject.schema.partition_keys)
    if keys:
        raise argument(f"columns {sorted(keys)} cannot be partition keys")
