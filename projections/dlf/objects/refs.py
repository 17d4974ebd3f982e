"""Tags, branches and consumers. Source: Paimon's REST classes."""

from __future__ import annotations

from attrs import frozen

from ledger.model.snapshot import Snapshot
from projections.dlf.objects.parts import Page


@frozen
class CreateTagRequest:
    """Name a snapshot.

    Attributes:
        tag_name: The name.
        snapshot_id: Which one; the latest unless given.
        time_retained: How long it is kept, as Paimon spells durations (`1 d`); None for ever.

    Example:
        >>> CreateTagRequest("v1", snapshot_id=3).time_retained is None
        True
    """

    tag_name: str
    snapshot_id: int | None = None
    time_retained: str | None = None


@frozen
class GetTagResponse:
    """A tag and its snapshot.

    Attributes:
        tag_name: The name.
        snapshot: The snapshot that it names.
        tag_create_time: Unix milliseconds; None where the tag was made without a retention.
        tag_time_retained: An ISO 8601 duration, such as `PT24H`; None for ever.
    """

    tag_name: str
    snapshot: Snapshot
    tag_create_time: int | None = None
    tag_time_retained: str | None = None


@frozen(kw_only=True)
class ListTagsResponse(Page):
    """Names of a table's tags."""

    tags: tuple[str, ...] = ()


@frozen
class CreateBranchRequest:
    """Make a branch, of a tag's snapshot or empty."""

    branch: str
    from_tag: str | None = None


@frozen
class RenameBranchRequest:
    """Give a branch another name."""

    to_branch: str


@frozen
class ForwardBranchRequest:
    """Let the main branch take over a branch; the request's path names it."""


@frozen
class ListBranchesResponse:
    """Names of a table's branches; None where Paimon says nothing instead of an empty list."""

    branches: tuple[str, ...] | None = None


@frozen
class ConsumerInfo:
    """How far a reader has read; the snapshots from there on do not expire."""

    consumer_id: str
    next_snapshot: int | None = None


@frozen(kw_only=True)
class ListConsumersResponse(Page):
    """A table's consumers."""

    consumers: tuple[ConsumerInfo, ...] = ()


@frozen
class ResetConsumerRequest:
    """Set how far a reader has read; None forgets the reader."""

    consumer_id: str
    next_snapshot_id: int | None = None
