"""The metadata API has no words for what only Iceberg has, and says so."""

from __future__ import annotations

import pytest

from ledger import AddColumn, SchemaChange, SetIdentifierFields, UnsupportedError
from projections.dlf import Style, render


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize(
    "change", [SetIdentifierFields((("id",),)), AddColumn(("x",), "INT", default_value="7")]
)
def test_a_change_of_icebergs_alone_is_not_written(change: SchemaChange, style: Style) -> None:
    with pytest.raises(UnsupportedError, match="only Iceberg"):
        render(change, style)


@pytest.mark.parametrize("style", list(Style))
def test_a_plain_new_column_has_no_key_for_a_default(style: Style) -> None:
    assert "defaultValue" not in render(AddColumn(("x",), "INT"), style)
