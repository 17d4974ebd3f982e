"""Every object of the DLF metadata API, in the DLF page's spelling and in Paimon's REST spelling.

`get_table_response`, `table_snapshot`, `get_view_response` make views of a state; `render` and
`read` turn views and the model's values into JSON and back.
"""

from __future__ import annotations

from projections.dlf.reading import read
from projections.dlf.rendering import render
from projections.dlf.style import Style
from projections.dlf.table_views import get_table_response, get_view_response, table_snapshot
from projections.dlf.views import GetTableResponse, GetViewResponse, Partition, TableSnapshot

__all__ = [
    "GetTableResponse",
    "GetViewResponse",
    "Partition",
    "Style",
    "TableSnapshot",
    "get_table_response",
    "get_view_response",
    "read",
    "render",
    "table_snapshot",
]
