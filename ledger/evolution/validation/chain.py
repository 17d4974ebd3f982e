"""Rules of chain tables: what `chain-table.enabled` needs."""

from __future__ import annotations

from ledger.evolution.options.reading import TableOptions
from ledger.evolution.refusals import argument
from ledger.evolution.validation.subject import Subject

_KEY = "chain-table.enabled"
_KEYS_KEY = "chain-table.chain-partition-keys"


def chain_table(subject: Subject) -> None:
    """Check what a chain table needs.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options = subject.options
    if not options.flag(_KEY):
        return
    if (options.text("type") or "table").lower() != "table":
        raise argument(f"option {_KEY} needs type=table")
    if not subject.has_primary_key or not subject.schema.partition_keys:
        raise argument(f"option {_KEY} needs a primary key and partition keys")
    if options.bucket < 1:
        raise argument(f"option {_KEY} needs a fixed number of buckets")
    if not subject.sequence_fields:
        raise argument(f"option {_KEY} needs sequence.field")
    _check_files(options)
    for key in ("partition.timestamp-pattern", "partition.timestamp-formatter"):
        if options.text(key) is None:
            raise argument(f"option {_KEY} needs {key}")
    strategy = options.text("partition.expiration-strategy") or "values-time"
    if options.text("partition.expiration-time") is not None and strategy != "values-time":
        raise argument(f"option {_KEY} needs partition.expiration-strategy=values-time")
    _check_chain(subject)


def _check_files(options: TableOptions) -> None:
    if options.changelog_producer not in {"none", "input"}:
        raise argument(f"option {_KEY} goes with changelog-producer none or input only")
    if options.flag("deletion-vectors.enabled") and options.merge_engine != "deduplicate":
        raise argument(f"option {_KEY} with deletion vectors needs merge-engine deduplicate")


def _check_chain(subject: Subject) -> None:
    listed = subject.options.text(_KEYS_KEY) or ""
    if not listed.strip():
        return
    chain = tuple(each.strip() for each in listed.split(","))
    keys = subject.schema.partition_keys
    if keys[len(keys) - len(chain) :] != chain:
        raise argument(f"option {_KEYS_KEY}={listed!r} must be the last of partition keys {keys}")
