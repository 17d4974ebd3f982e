"""What many objects of the metadata API share. Times are Unix time in milliseconds."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Audited:
    """Who owns something, who made it and who changed it last."""

    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None


@frozen(kw_only=True)
class Page:
    """One page of a list; `next_page_token` asks for the next one and is None on the last."""

    next_page_token: str | None = None
