"""The table properties that the ledger and engines go by, and what holds without them.

Source: Iceberg's documentation, "Table properties".
"""

from __future__ import annotations

PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
DEFAULT_PREVIOUS_VERSIONS = 100
GC_ENABLED = "gc.enabled"
MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * 24 * 60 * 60 * 1000
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
"""Ends refs that do not say when they end."""

NEVER_MS = 2**63 - 1
"""The age of a ref that is to stay for ever."""
