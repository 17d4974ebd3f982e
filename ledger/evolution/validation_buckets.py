"""Rules of buckets and bucket keys."""

from __future__ import annotations

from ledger.evolution.refusals import argument, runtime
from ledger.evolution.subject import Subject

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
    _bucket_keys(subject)
    if not subject.has_primary_key and not subject.bucket_keys:
        raise runtime(f"option bucket={bucket} of a table without primary key needs bucket-key")


def _dynamic(subject: Subject) -> None:
    if subject.options.text("bucket-key") is not None:
        raise argument("option bucket-key needs a fixed number of buckets; set option bucket, too")
    delta_commits = subject.options.text("full-compaction.delta-commits")
    if not subject.has_primary_key and delta_commits is not None:
        raise runtime("option full-compaction.delta-commits needs a fixed number of buckets")


def _bucket_keys(subject: Subject) -> None:
    schema = subject.schema
    for name in subject.bucket_keys:
        if name not in subject.columns:
            raise runtime(f"option bucket-key names {name}, which is not a column")
        if name in schema.partition_keys:
            raise runtime(f"option bucket-key names {name}, which is a partition key")
        if schema.primary_keys and name not in schema.primary_keys:
            raise runtime(f"option bucket-key names {name}, which is not in the primary key")
        root = subject.columns[name].type.root
        if root in _NESTED_ROOTS:
            raise runtime(f"option bucket-key names {name}, which is {root}; use a flat column")
