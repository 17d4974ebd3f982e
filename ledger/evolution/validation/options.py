"""Rules between options: changelog, retention, time fields, deletion vectors, clustering."""

from __future__ import annotations

from ledger.evolution.refusals import argument, runtime, unsupported
from ledger.evolution.validation.subject import Subject

_INT_MAX = 2**31 - 1
_TIME_ROOTS = ("INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ")


def changelog_producer(subject: Subject) -> None:
    """Check where changelogs come from.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    options, producer = subject.options, subject.options.changelog_producer
    if producer != "none" and not subject.has_primary_key:
        raise unsupported(f"option changelog-producer={producer} needs a primary key")
    if options.flag("streaming-read-overwrite") and producer in {"full-compaction", "lookup"}:
        raise unsupported(
            f"option streaming-read-overwrite would read changes twice under {producer}"
        )
    if options.text("full-compaction.delta-commits") is not None:
        options.number("full-compaction.delta-commits", 0)
        if producer == "lookup":
            raise unsupported(
                "option full-compaction.delta-commits does not go with changelog-producer lookup"
            )


def retention(subject: Subject) -> None:
    """Check how many rows, snapshots and changelogs are kept.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options = subject.options
    if options.number("target-file-row-num", 1) < 1:
        raise argument("option target-file-row-num must be at least 1")
    defaults = (10, _INT_MAX)
    for what in ("snapshot", "changelog"):
        least = options.number(f"{what}.num-retained.min", defaults[0])
        most = options.number(f"{what}.num-retained.max", defaults[1])
        if least < 1:
            raise argument(f"option {what}.num-retained.min={least} must be at least 1")
        if least > most:
            raise argument(f"option {what}.num-retained.min={least} exceeds the max, {most}")
        # A changelog is kept as long as a snapshot where nothing else is said.
        defaults = (least, most)


def streaming_overwrite(subject: Subject) -> None:
    """Check that overwrites are streamed from primary-key tables only.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if subject.options.flag("streaming-read-overwrite") and not subject.has_primary_key:
        raise runtime(
            "option streaming-read-overwrite needs a primary key; "
            "use streaming-read-append-overwrite for append tables"
        )


def time_field(subject: Subject) -> None:
    """Check the column that records expire by.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = subject.options.text("record-level.time-field")
    if name is None:
        return
    column = subject.columns.get(name)
    if column is None:
        raise argument(f"option record-level.time-field names {name}, which is not a column")
    if column.type.root not in _TIME_ROOTS:
        raise argument(
            f"option record-level.time-field: {name} is {column.type.root}, "
            f"not one of {', '.join(_TIME_ROOTS)}"
        )


def first_row(subject: Subject) -> None:
    """Check the changelog of a first-row table.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    producer = subject.options.changelog_producer
    if subject.options.merge_engine == "first-row" and producer not in {"none", "lookup"}:
        raise argument(f"merge-engine first-row goes with none or lookup, not {producer}")


def rowkind_field(subject: Subject) -> None:
    """Check the column that holds the kind of a row.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = subject.options.text("rowkind.field")
    if name is not None and name not in subject.columns:
        raise argument(f"option rowkind.field names {name}, which is not a column")


def deletion_vectors(subject: Subject) -> None:
    """Check what deletion vectors go with.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options = subject.options
    if not options.flag("deletion-vectors.enabled"):
        return
    if options.changelog_producer == "full-compaction":
        raise argument("deletion vectors do not go with changelog-producer full-compaction")
    if options.merge_engine == "first-row" and not options.flag("pk-clustering-override"):
        raise argument("deletion vectors do not go with merge-engine first-row")


def snapshot_ordering(subject: Subject) -> None:
    """Check what ordering rows by snapshot needs.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    key = "sequence.snapshot-ordering"
    if not subject.options.flag(key):
        return
    if not subject.has_primary_key:
        raise argument(f"option {key} needs a primary key")
    if subject.sequence_fields:
        raise argument(f"option {key} does not go with sequence.field")
    if not subject.options.flag("write-only", "write.compaction-skip"):
        raise argument(f"option {key} needs write-only=true")


def incremental_clustering(subject: Subject) -> None:
    """Check what incremental clustering goes with.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options, key = subject.options, "clustering.incremental"
    if not options.flag(key):
        return
    if subject.has_primary_key:
        raise argument(f"option {key} does not go with a primary key")
    if options.bucket == -1:
        return
    if options.is_true("bucket-append-ordered", default=True):
        raise argument(f"option {key} with fixed buckets needs bucket-append-ordered=false")
    if options.flag("deletion-vectors.enabled"):
        raise argument(f"option {key} with fixed buckets does not go with deletion vectors")


def read_sequence_number(subject: Subject) -> None:
    """Check that sequence numbers are read from primary-key tables only.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    key = "table-read.sequence-number.enabled"
    if subject.options.flag(key) and not subject.has_primary_key:
        raise argument(f"option {key} needs a primary key")


def clustering_override(subject: Subject) -> None:
    """Check what `pk-clustering-override` goes with.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or UNSUPPORTED.
    """
    options, key = subject.options, "pk-clustering-override"
    if not options.flag(key):
        return
    if not options.text("clustering.columns", "sink.clustering.by-columns"):
        raise argument(f"option {key} needs clustering.columns")
    engine = options.merge_engine
    if engine != "first-row" and not options.flag("deletion-vectors.enabled"):
        raise unsupported(f"option {key} needs deletion-vectors.enabled=true")
    if options.text("record-level.expire-time") is not None:
        raise unsupported(f"option {key} does not go with record-level.expire-time")
    if engine not in {"deduplicate", "first-row"}:
        raise unsupported(f"option {key} does not go with merge-engine {engine}")
    if subject.sequence_fields:
        raise unsupported(f"option {key} does not go with sequence.field")
    if options.changelog_producer not in {"none", "input"}:
        raise unsupported(f"option {key} goes with changelog-producer none or input only")


def manifest_sort(subject: Subject) -> None:
    """Check what manifests are sorted by.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options, partition_keys = subject.options, subject.schema.partition_keys
    if not options.flag("manifest-sort.enabled"):
        return
    if not partition_keys and not options.flag("data-evolution.enabled"):
        raise argument("option manifest-sort.enabled needs a partitioned table")
    name = options.text("manifest-sort.partition-field")
    if name and name not in partition_keys:
        raise argument(f"option manifest-sort.partition-field names {name}, not a partition key")
