"""A table of somebody else in the place of ours, which is never overwritten."""

from __future__ import annotations

import msgspec

from ledger.model.errors import StoreError
from projections.iceberg.names import FOLDER, HINT
from projections.outputs import Outputs


class _Table(msgspec.Struct, rename="kebab"):
    table_uuid: str | None = None


def refuse_foreign_table(outputs: Outputs, table_id: str) -> None:
    """Refuse a folder whose hint leads to the metadata of another table.

    Raises:
        StoreError: It does.
    """
    hint = (outputs.read(HINT) or b"").decode(errors="replace").strip()
    body = outputs.read(f"{FOLDER}/v{hint}.metadata.json") if hint.isalnum() else None
    if body is None:
        # It leads nowhere, so nobody reads by it.
        return
    try:
        found = msgspec.json.decode(body, type=_Table).table_uuid
    except (msgspec.DecodeError, UnicodeError):
        found = None
    if found is None or found.lower() != table_id.lower():
        raise StoreError(
            f"{HINT} leads to the metadata of another table, {found}, and is left as it is: look "
            "at it, then move that table away",
            kind="FOREIGN_FILE",
        )
