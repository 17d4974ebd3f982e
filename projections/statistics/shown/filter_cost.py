"""What a filter costs under each partition spec that files lie in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ledger.table_at import TableAt


def filter_cost(at: TableAt, where: str | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each spec that has files, in the order of specs.

    Args:
        at: The table at an instant.
        where: The filter, as SQL; None for all rows.

    Raises:
        InvalidInputError: The filter cannot be read.
        UnsupportedError: An engine's manifests list the files, and not the ledger.
    """
    plan = at.plan(where)
    sizes: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for each in at.files:
        sizes[each.spec_id] += each.file_size_in_bytes
        rows[each.spec_id] += each.record_count if each.content == "data" else 0
    to_read: Counter[int] = Counter()
    for planned in plan.files:
        to_read[planned.file.spec_id] += planned.file.file_size_in_bytes
    for spec in at.state.specs:
        counts = plan.counts.get(spec.spec_id)
        if counts is None or not counts.total:
            continue
        size = sizes[spec.spec_id]
        yield {
            "spec_id": spec.spec_id,
            "fields": ", ".join(
                each.name if each.transform == "identity" else f"{each.name} ({each.transform})"
                for each in spec.fields
            ),
            "asked_of_partitions": plan.by_spec[spec.spec_id],
            "file_count": counts.total,
            "files_read": counts.kept,
            "left_out_by_partition": counts.by_partition,
            "left_out_by_bounds": counts.by_metrics,
            "record_count": rows[spec.spec_id],
            "file_size_in_bytes": size,
            "read_size_in_bytes": to_read[spec.spec_id],
            "read_share": round(to_read[spec.spec_id] / size, 4) if size else 0.0,
        }
