"""Views: a query under a name. Source: the DLF metadata API's ViewSchema."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.model.schema import as_fields, as_texts
from ledger.model.types import DataField


@frozen
class ViewSchema:
    """What a view is.

    Attributes:
        fields: The columns of its result.
        query: The query text.
        dialects: Other spellings of the query, by engine: `{"spark": "SELECT ..."}`.
        comment: None when it has none.
        options: View options.
    """

    fields: tuple[DataField, ...] = field(converter=as_fields)
    query: str
    dialects: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
