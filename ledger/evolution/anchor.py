"""What a decided change was about, kept for deciding it again on a newer schema."""

from __future__ import annotations

from attrs import frozen


@frozen
class Anchor:
    """What a change was about when it was first decided, for deciding it again later.

    Attributes:
        ids: One field id a path segment; None for wrapper segments and for a new column's name.
            Where a change names several paths, those of the first path come first.
        reference_id: The column that a move refers to.
        assigned: The ids that this change gave out, the column's own first.
    """

    ids: tuple[int | None, ...] = ()
    reference_id: int | None = None
    assigned: tuple[int, ...] = ()
