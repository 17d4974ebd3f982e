"""Changes of Iceberg alone as JSON: the ledger's own form has them, the dialects' do not."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import (
    AddColumn,
    InvalidChangeError,
    SchemaChange,
    SetIdentifierFields,
    UnsupportedError,
    schema_change_from_json,
    schema_change_to_json,
)

WITH_DEFAULT = AddColumn(("s", "x"), "INT", default_value="7")
IDENTIFIED = SetIdentifierFields((("id",), ("s", "x")))


@pytest.mark.parametrize(
    ("change", "plain"),
    [
        (
            WITH_DEFAULT,
            {
                "type": "addColumn",
                "fieldNames": ["s", "x"],
                "dataType": "INT",
                "defaultValue": "7",
            },
        ),
        (IDENTIFIED, {"type": "setIdentifierFields", "fieldNames": [["id"], ["s", "x"]]}),
        (SetIdentifierFields(()), {"type": "setIdentifierFields", "fieldNames": []}),
    ],
)
def test_it_is_written_and_read_back(change: SchemaChange, plain: dict[str, Any]) -> None:
    assert schema_change_to_json(change) == plain
    assert schema_change_from_json(plain) == change


@pytest.mark.parametrize("change", [WITH_DEFAULT, IDENTIFIED])
def test_paimons_wire_form_refuses_it(change: SchemaChange) -> None:
    with pytest.raises(UnsupportedError, match="Paimon's wire form cannot"):
        schema_change_to_json(change, discriminator="action")


@pytest.mark.parametrize("given", [None, "id", [[]], [3], {"a": "b"}])
def test_identifier_fields_that_are_no_paths_are_refused_at_their_place(given: object) -> None:
    with pytest.raises(InvalidChangeError, match=r"^\$\.fieldNames"):
        schema_change_from_json({"type": "setIdentifierFields", "fieldNames": given})
