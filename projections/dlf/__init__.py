"""Objects of the DLF metadata API, in the DLF page's and in Paimon's REST spelling.

Source: the DLF page; Paimon's REST classes.

Example:
    >>> from ledger.model.names import Identifier
    >>> from projections.dlf.objects import RenameRequest
    >>> request = RenameRequest(Identifier("shop", "a"), Identifier("shop", "b"))
    >>> render(request, Style.PAIMON_REST)["destination"]
    {'database': 'shop', 'object': 'b'}
    >>> read(render(request, Style.DLF), RenameRequest) == request
    True
"""

from __future__ import annotations

from projections.dlf.keys import Style
from projections.dlf.objects import (
    ApiInstant,
    GetFunctionResponse,
    GetTableResponse,
    GetViewResponse,
    Partition,
    TableSnapshot,
)
from projections.dlf.reading import read
from projections.dlf.rendering import render
from projections.dlf.table_views import (
    get_function_response,
    get_table_response,
    get_view_response,
    table_snapshot,
)

__all__ = [
    "ApiInstant",
    "GetFunctionResponse",
    "GetTableResponse",
    "GetViewResponse",
    "Partition",
    "Style",
    "TableSnapshot",
    "get_function_response",
    "get_table_response",
    "get_view_response",
    "read",
    "render",
    "table_snapshot",
]
