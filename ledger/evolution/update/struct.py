"""What an update does to the members of one struct: who goes, who is called what, who comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from attrs import frozen
from msgspec import UnsetType

from ledger.events.schema_changes import DropColumn, RenameColumn, SchemaChange
from ledger.evolution.refusals import argument
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.names import Path
from ledger.evolution.update.pending import Addition, Pending, Target
from ledger.model.errors import ColumnExistsError
from ledger.model.types import RowType


@frozen
class StructUpdate:
    """One struct's members, before and afterwards.

    Attributes:
        parent: The struct's path before; empty for the table itself.
        before: Its members' names, in order.
        gone: Those that go.
        renames: Old name to new one, for those that are renamed.
        added: Its new members.
    """

    parent: Path
    before: tuple[str, ...]
    gone: tuple[str, ...]
    renames: dict[str, str]
    added: tuple[Addition, ...]

    @classmethod
    def of(cls, pending: Pending, parent: Path) -> Self:
        """Return what is pending for the struct at `parent`.

        Raises:
            InvalidChangeError: Two members would have one name, or none would be left.
        """
        around = pending.names.spots[parent].type if parent else None
        members = around.fields if isinstance(around, RowType) else pending.schema.fields
        before = tuple(each.name for each in members)
        renames: dict[str, str] = {}
        for name in before:
            edit = pending.edits.get((*parent, name))
            if edit is not None and not isinstance(edit.new_name, UnsetType):
                renames[name] = edit.new_name
        gone = tuple(name for name in before if (*parent, name) in pending.deleted)
        added = tuple(each for each in pending.additions if each.parent == parent)
        made = cls(parent, before, gone, renames, added)
        made._check(pending)
        return made

    def _check(self, pending: Pending) -> None:
        seen: set[str] = set()
        for name in self._names_after():
            folded = pending.folded(name)
            if folded in seen:
                taken = dotted((*self.parent, name))
                raise ColumnExistsError(f"column {taken} exists already; choose another name")
            seen.add(folded)
        if not seen:
            raise argument(
                f"{dotted(self.parent) or 'the table'} would have no column left; "
                "delete the whole instead"
            )

    def _kept(self) -> list[str]:
        return [name for name in self.before if name not in self.gone]

    def _names_after(self) -> list[str]:
        kept = [self.renames.get(name, name) for name in self._kept()]
        return [*kept, *(each.name for each in self.added)]

    @property
    def _last_to_go(self) -> str | None:
        """The member that goes after the new ones came: a struct is never empty."""
        return None if self._kept() else self.before[-1]

    def result(self) -> list[Target]:
        """Return the members afterwards, in order, before any of them moves."""
        return [*((*self.parent, name) for name in self._kept()), *self.added]

    def drops(self) -> Iterator[SchemaChange]:
        """Yield the drops that come before anything is renamed or added."""
        for name in self.gone:
            if name != self._last_to_go:
                yield DropColumn((*self.parent, name))

    def late_drops(self, parent: Path) -> Iterator[SchemaChange]:
        """Yield the drop that has to wait for the new members; `parent` is the path by then."""
        last = self._last_to_go
        if last is not None:
            spare = self._spare(last) if self._is_wanted(last) else last
            yield DropColumn((*parent, spare))

    def renames_in_order(self) -> Iterator[SchemaChange]:
        """Yield the renames such that no two members ever have one name."""
        waiting = {old: new for old, new in self.renames.items() if old != new}
        last = self._last_to_go
        if last is not None and self._is_wanted(last):
            waiting[last] = self._spare(last)
        there = {*self._kept(), *((last,) if last else ())}
        while waiting:
            old = next((each for each, new in waiting.items() if new not in there), None)
            if old is None:
                # They change places in a circle: one of them steps aside.
                old = next(iter(waiting))
                aside = self._spare(old)
                waiting[aside] = waiting[old]
                waiting[old] = aside
            new = waiting.pop(old)
            there.symmetric_difference_update({old, new})
            yield RenameColumn((*self.parent, old), new)

    def _is_wanted(self, name: str) -> bool:
        return any(each.name == name for each in self.added)

    def _spare(self, name: str) -> str:
        taken = {*self.before, *self._names_after()}
        while name in taken:
            name += "_"
        return name
