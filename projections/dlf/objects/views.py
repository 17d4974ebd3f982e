"""Views: what the metadata API says of them and what can be asked.

Source: the DLF page's GetViewResponse and ViewSchema; Paimon's REST classes for the rest.
"""

from __future__ import annotations

from attrs import frozen

from ledger.events.catalog_events import ViewChange
from ledger.model.identifier import Identifier
from ledger.model.schema import ViewSchema
from projections.dlf.objects.parts import Audited, Page


@frozen(kw_only=True)
class GetViewResponse(Audited):
    """A view. The DLF page has no owner and no audit; Paimon's REST spelling does.

    Example:
        >>> GetViewResponse(id="1", name="view_demo", schema=ViewSchema((), "SELECT 1")).name
        'view_demo'
    """

    id: str
    name: str
    schema: ViewSchema


@frozen
class CreateViewRequest:
    """Create a view."""

    identifier: Identifier
    schema: ViewSchema


@frozen
class AlterViewRequest:
    """Change a view, one change after the other, all or none."""

    changes: tuple[ViewChange, ...]


@frozen(kw_only=True)
class ListViewsResponse(Page):
    """Names of the views of one database."""

    views: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListViewDetailsResponse(Page):
    """The views of one database, in full."""

    view_details: tuple[GetViewResponse, ...] = ()


@frozen(kw_only=True)
class ListViewsGloballyResponse(Page):
    """Full names of views in any database."""

    views: tuple[Identifier, ...] = ()
