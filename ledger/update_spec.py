"""UpdateSpec: changes of a table's partition spec, gathered and then committed as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from attrs import evolve, frozen

from ledger.commit_options import CommitOptions
from ledger.events.spec_changes import (
    AddPartitionField,
    RemovePartitionField,
    RenamePartitionField,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.evolution.state import TableState
from ledger.log.request import Appended
from ledger.model.partition import PartitionSpec
from ledger.transforms import Column, Term, term_of

if TYPE_CHECKING:
    from ledger.table import Table


@frozen
class UpdateSpec:
    """How files written from now on are to be laid out; each call gives a new one.

    Files that are there keep their layout. All updates are resolved against the default spec that
    the table has when they are committed, as Iceberg does.

    Attributes:
        table: Whose spec.
        updates: What was asked so far.
        set_default: Whether the new spec becomes the default.

    Example:
        >>> import ledger
        >>> from ledger.transforms import bucket
        >>> lake = ledger.open("memory://update-spec")
        >>> _ = lake.create_database("shop")
        >>> table = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> table.update_spec().add_field(bucket("id", 8)).apply().fields[0].name
        'id_bucket_8'
    """

    table: Table
    updates: tuple[SpecUpdate, ...] = ()
    set_default: bool = True

    def add_field(self, source: Term | Column, name: str | None = None) -> UpdateSpec:
        """Add a partition field.

        Args:
            source: A column, or a transform of one.
            name: None for Iceberg's own, such as `id_bucket_8`.
        """
        term = term_of(source)
        return self._with(AddPartitionField(term.source, term.transform, name))

    def remove_field(self, field: str | Term) -> UpdateSpec:
        """Remove a partition field, by its name or by what it is of."""
        if isinstance(field, Term):
            return self._with(RemovePartitionField(source=field.source, transform=field.transform))
        return self._with(RemovePartitionField(name=field))

    def rename_field(self, name: str, new_name: str) -> UpdateSpec:
        """Give a partition field another name."""
        return self._with(RenamePartitionField(name, new_name))

    def add_non_default_spec(self) -> UpdateSpec:
        """Keep the new spec beside the default one."""
        return evolve(self, set_default=False)

    def _with(self, update: SpecUpdate) -> UpdateSpec:
        return evolve(self, updates=(*self.updates, update))

    @property
    def change(self) -> UpdatePartitionSpec:
        """The change as `table.alter` takes it."""
        return UpdatePartitionSpec(self.updates, self.set_default)

    def apply(self) -> PartitionSpec:
        """Return the spec that would come out, without committing it.

        Raises:
            InvalidChangeError: A rule forbids an update.
        """
        for refusal in self.table.plan([self.change]).refusals:
            raise refusal
        # As a default it would be the same spec.
        return self.table.plan([UpdatePartitionSpec(self.updates)]).after.spec

    def commit(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit the updates; all land or none.

        Raises:
            InvalidChangeError: A rule forbids an update; nothing was written.
            CommitConflictError: Somebody else changed the spec otherwise meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        return self.table.alter([self.change], **options)
