"""Rules of buckets and bucket keys."""

from __future__ import annotations

from ledger.evolution.refusals import argument, runtime
from ledger.evolution.validation.subject import Subject

_DYNAMIC = -1
_POSTPONED = -2
_NESTED_ROOTS = ("ARRAY", "MULTISET", "MAP", "ROW")


def buckets(subject: Subject) -> None:
    """Check the number of buckets, and whether rows find theirs.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or RUNTIME.
    """
    bucket = subject.options.bucket
    if bucket == _DYNAMIC:
        _dynamic(subject)
        return
    if bucket < 1 and not (bucket == _POSTPONED and subject.has_primary_key):
        raise runtime(f"option bucket={bucket}: the number of buckets must be greater than 0")
    if not subject.has_primary_key and not subject.bucket_keys:
        raise runtime(f"option bucket={bucket} of a table without primary key needs bucket-key")
    for name in subject.bucket_keys:
        root = subject.columns[name].type.root
        if root in _NESTED_ROOTS:
            raise runtime(f"option bucket-key names {name}, which is {root}; use a flat column")


def _dynamic(subject: Subject) -> None:
    if subject.options.text("bucket-key") is not None:
        raise argument("option bucket-key needs a fixed number of buckets; set option bucket, too")
    if subject.has_primary_key or subject.options.text("full-compaction.delta-commits") is None:
        return
    commits = subject.options.number("full-compaction.delta-commits", 0)
    raise runtime(f"option full-compaction.delta-commits={commits} needs a fixed number of buckets")


def bucket_keys(subject: Subject) -> None:
    """Check that the bucket keys are columns which the rows of a partition differ in.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    schema = subject.schema
    for name in subject.bucket_keys:
        if name not in subject.columns:
            raise runtime(f"option bucket-key names {name}, which is not a column")
        if name in schema.partition_keys:
            raise runtime(f"option bucket-key names {name}, which is a partition key")
        if schema.primary_keys and name not in schema.primary_keys:
            raise runtime(f"option bucket-key names {name}, which is not in the primary key")
