"""Tables: what the metadata API says of them and what can be asked.

Source: the DLF page's GetTableResponse; Paimon's REST classes for the rest.
"""

from __future__ import annotations

from attrs import frozen

from ledger.events.schema_changes import SchemaChange
from ledger.model.identifier import Identifier
from ledger.model.schema import Schema
from projections.dlf.objects.parts import Audited, Page


@frozen(kw_only=True)
class GetTableResponse(Audited):
    """A table at one instant.

    Attributes:
        id: The table's UUID.
        name: Its name, without the database.
        path: Its location as an absolute URL.
        schema_id: The id of `schema`.
        database: Only Paimon's REST spelling has it.

    Example:
        >>> table = GetTableResponse(
        ...     id="1", name="orders", path="oss://lake/orders", is_external=True, schema_id=0,
        ...     schema=Schema.of({"id": "BIGINT"}),
        ... )
        >>> table.owner is None
        True
    """

    id: str
    name: str
    path: str
    is_external: bool
    schema_id: int
    schema: Schema
    database: str | None = None


@frozen
class CreateTableRequest:
    """Create a table; the schema's field ids are the caller's proposal."""

    identifier: Identifier
    schema: Schema


@frozen
class AlterTableRequest:
    """Change a table's schema, one change after the other, all or none."""

    changes: tuple[SchemaChange, ...]


@frozen
class ReplaceTableRequest:
    """Empty a table and give it another schema."""

    schema: Schema


@frozen
class RenameRequest:
    """Give a table or a view another name. Paimon's class is RenameTableRequest for both."""

    source: Identifier
    destination: Identifier


@frozen
class RegisterTableRequest:
    """Make a table known that exists at `path` already."""

    identifier: Identifier
    path: str


@frozen
class RollbackSchemaRequest:
    """Go back to an older schema."""

    schema_id: int


@frozen(kw_only=True)
class ListTablesResponse(Page):
    """Names of the tables of one database."""

    tables: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListTableDetailsResponse(Page):
    """The tables of one database, in full."""

    table_details: tuple[GetTableResponse, ...] = ()


@frozen(kw_only=True)
class ListTablesGloballyResponse(Page):
    """Full names of tables in any database."""

    tables: tuple[Identifier, ...] = ()
