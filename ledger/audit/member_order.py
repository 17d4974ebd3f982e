"""MemberOrder: the order of one struct's members, and the moves that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field
from msgspec import Struct

from ledger.audit.cause import Cause
from ledger.state.linked_order import LinkedOrder

MOST_STEPS: Final = 2_000
"""Number of a struct's moves that are kept; of older ones only the resulting order is kept."""

MOST_JUDGED: Final = 20
"""Number of moves of one transaction that are judged one by one, each by replaying later ones."""


@define
class MemberOrder:
    """Order of one struct's members, and the moves that led to it.

    Attributes:
        ids: The members' field ids.
        names: The field ids by the members' names.
    """

    ids: LinkedOrder = field(factory=LinkedOrder)
    names: dict[str, int] = field(factory=dict)
    _base: LinkedOrder = field(factory=LinkedOrder)
    _steps: list[_OrderStep] = field(factory=list)

    def add(self, member: int, name: str) -> None:
        """Append a new member."""
        self.names[name] = member
        self._apply_step(_OrderStep("ADD", member))

    def rename(self, member: int, before: str, after: str) -> None:
        """Change the name of a member; another one may have taken its earlier name."""
        self._discard_name(member, before)
        self.names[after] = member

    def place_newest(self, kind: str, reference: int | None) -> None:
        """Move the newest member to the position that its own event gives."""
        member = self._steps.pop().member
        self.ids.remove(member)
        self._apply_step(_OrderStep(kind, member, reference))

    def remove(self, member: int, name: str) -> None:
        """Remove a member."""
        self._discard_name(member, name)
        self._apply_step(_OrderStep("REMOVE", member))

    def _discard_name(self, member: int, name: str) -> None:
        if self.names.get(name) == member:
            del self.names[name]

    def move(self, member: int, kind: str, reference: int | None, cause: Cause) -> bool:
        """Move a member; return whether its position changed."""
        return self._apply_step(_OrderStep(kind, member, reference, cause))

    def replace_order(self, ids: Sequence[int], cause: Cause) -> None:
        """Replace the whole order."""
        behind: int | None = None
        for each in ids:
            if self.ids.after(behind) != each:
                self.move(each, "FIRST" if behind is None else "AFTER", behind, cause)
            behind = each

    def _apply_step(self, step: _OrderStep) -> bool:
        has_moved = step.on(self.ids)
        self._steps.append(step)
        if len(self._steps) > 2 * MOST_STEPS:
            for each in self._steps[:MOST_STEPS]:
                each.on(self._base)
            del self._steps[:MOST_STEPS]
        return has_moved

    def causes(self) -> Iterator[Cause]:
        """Yield the moves of transactions without which the order would differ, oldest first."""
        order = self._base.copy()
        start = 0
        for span in self._transaction_spans():
            for step in self._steps[start : span.start]:
                step.on(order)
            start = span.start
            moves = [at for at in span if self._steps[at].cause is not None]
            if self._affects_final_order(moves, order):
                yield from self._effective_moves(moves, order)

    def _transaction_spans(self) -> Iterator[range]:
        """Yield the span of each transaction's steps, from its first move to its last."""
        spans: dict[tuple[int, str], range] = {}
        for at, step in enumerate(self._steps):
            if step.cause is not None:
                key = step.cause.version, step.cause.transaction
                spans[key] = range(spans[key].start if key in spans else at, at + 1)
        return iter(spans.values())

    def _effective_moves(self, moves: Sequence[int], before: LinkedOrder) -> Iterator[Cause]:
        """Yield the moves of a transaction that matter alone, or else those that moved a member."""
        order, moved, needed = before.copy(), [], []
        # A transaction with many moves sets a new order as a whole.
        is_judged = len(moves) <= MOST_JUDGED
        for at in range(moves[0], moves[-1] + 1):
            step = self._steps[at]
            if step.cause is None:
                step.on(order)
                continue
            if is_judged and self._affects_final_order([at], order):
                needed.append(step.cause)
            if step.on(order):
                moved.append(step.cause)
        yield from needed or moved

    def _affects_final_order(self, moves: Sequence[int], before: LinkedOrder) -> bool:
        """Return whether the final order would differ without some steps, the first one next."""
        without, last = frozenset(moves), moves[-1]
        pair = _OrderPair(before.copy(), before.copy())
        for at in range(moves[0], len(self._steps)):
            if at > last and not pair.differing:
                return False
            pair.apply(self._steps[at], is_left_out=at in without)
        return bool(pair.differing)


@define
class _OrderPair:
    """Two orders, and the ids that have another predecessor in one than in the other.

    None stands for the end, whose predecessor is the last member.
    """

    one: LinkedOrder
    two: LinkedOrder
    differing: set[int | None] = field(factory=set)

    def apply(self, step: _OrderStep, *, is_left_out: bool) -> None:
        """Apply a step to the first order, and to the second one unless it is left out."""
        touched = {*self._with_followers(step.member)}
        step.on(self.one)
        if not is_left_out:
            step.on(self.two)
        touched.update(self._with_followers(step.member))
        for each in touched:
            if _predecessor(self.one, each) == _predecessor(self.two, each):
                self.differing.discard(each)
            else:
                self.differing.add(each)

    def _with_followers(self, member: int) -> Iterator[int | None]:
        yield member
        for order in (self.one, self.two):
            if member in order:
                yield order.after(member)


def _predecessor(order: LinkedOrder, member: int | None) -> int | None:
    """Return the id before another one or before the end; -1 for one that is not there."""
    return order.before(member) if member is None or member in order else -1


class _OrderStep(Struct, frozen=True, gc=False):
    kind: str
    member: int
    reference: int | None = None
    cause: Cause | None = None

    def on(self, order: LinkedOrder) -> bool:
        """Apply the step to an order; return whether that changed it."""
        member, was_there, behind = self.member, self.member in order, None
        if was_there:
            behind = order.before(member)
            order.remove(member)
        if self.kind == "REMOVE":
            return was_there
        order.insert(member, self._predecessor(order))
        return not was_there or order.before(member) != behind

    def _predecessor(self, order: LinkedOrder) -> int | None:
        if self.kind == "FIRST":
            return None
        if self.reference is not None and self.reference in order:
            if self.kind == "AFTER":
                return self.reference
            if self.kind == "BEFORE":
                return order.before(self.reference)
        return order.before(None)
