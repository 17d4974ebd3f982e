"""Fixtures that the tests of all formats share."""

from __future__ import annotations

import pytest

from projections.iceberg import manifest_avro as avro
from projections.iceberg import manifest_writing as layout
from tests.projections.formats import DELTA, ICEBERG, PAIMON, Format


@pytest.fixture(params=["paimon", "iceberg", "iceberg, manifests soon full", "delta"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Format:
    """Each format whose files are kept beside the log, in turn."""
    if request.param == "paimon":
        return PAIMON
    if request.param == "delta":
        return DELTA
    if request.param != "iceberg":
        monkeypatch.setattr(layout, "MOST_ENTRIES", 3)
        monkeypatch.setattr(avro, "_BLOCK_BYTES", 1)
    return ICEBERG
