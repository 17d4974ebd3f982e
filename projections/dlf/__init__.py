"""Every object of the DLF metadata API, in the DLF page's spelling and in Paimon's REST spelling.

`get_table_response`, `table_snapshot`, `get_view_response` make views of a state; `render` and
`read` turn views and the ledger's own values into JSON and back. The page's Schema, ViewSchema,
Snapshot, Identifier, DataField, DataType, Instant, SchemaChange and Move are the ledger's own;
all other objects are small attrs classes here, by resource: `tables`, `views`, `snapshots`,
`partitions`, `refs` (tags, branches, consumers), `databases`, `functions`, `service`.

Others may import:
    `objects`      the objects of the API, by resource
    `wire`         their JSON
    `table_views`  views of a table's state, and of a view's

Source: the DLF page; Paimon's REST classes.

Example:
    >>> from ledger.model.identifier import Identifier
    >>> request = tables.RenameRequest(Identifier("shop", "a"), Identifier("shop", "b"))
    >>> render(request, Style.PAIMON_REST)["destination"]
    {'database': 'shop', 'object': 'b'}
    >>> read(render(request, Style.DLF), tables.RenameRequest) == request
    True
"""

from __future__ import annotations

from projections.dlf.objects import (
    databases,
    functions,
    partitions,
    refs,
    service,
    snapshots,
    tables,
    views,
)
from projections.dlf.objects.partitions import Partition
from projections.dlf.objects.snapshots import ApiInstant, TableSnapshot
from projections.dlf.objects.tables import GetTableResponse
from projections.dlf.objects.views import GetViewResponse
from projections.dlf.table_views import get_table_response, get_view_response, table_snapshot
from projections.dlf.wire.keys import Style
from projections.dlf.wire.reading import read
from projections.dlf.wire.rendering import render

__all__ = [
    "ApiInstant",
    "GetTableResponse",
    "GetViewResponse",
    "Partition",
    "Style",
    "TableSnapshot",
    "databases",
    "functions",
    "get_table_response",
    "get_view_response",
    "partitions",
    "read",
    "refs",
    "render",
    "service",
    "snapshots",
    "table_snapshot",
    "tables",
    "views",
]
