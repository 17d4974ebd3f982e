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
        named: The columns that an option names, one id a mention; None where there was no such
            column.
        assigned: The ids that this change gave out, the column's own first.
        lapsed: Whether Paimon stored nothing: an option was set to what it was before the batch.
    """

    ids: tuple[int | None, ...] = ()
    reference_id: int | None = None
    named: tuple[int | None, ...] = ()
    assigned: tuple[int, ...] = ()
    lapsed: bool = False
