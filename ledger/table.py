"""Table: the handle that a user holds on one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from ledger.commit_options import CommitOptions
from ledger.events import SchemaChange, SpecChange
from ledger.evolution.state import TableState
from ledger.log.request import Appended
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import InvalidInputError
from ledger.model.instant import millis
from ledger.plugins import PROJECTIONS, load
from ledger.table_handle import load_what_commits_need
from ledger.table_snapshots import SnapshotTable

# What only some calls need is imported by them: to read starts fast.
if TYPE_CHECKING:
    from ledger.correct_clock import ClockPlan
    from ledger.plan import ChangePlan
    from ledger.replace_sort_order import ReplaceOrder
    from ledger.update_schema import UpdateSchema
    from ledger.update_spec import UpdateSpec

CHANGES = its.many("a sequence of changes")


class Table(SnapshotTable):
    """One table: append to it, read it at any instant.

    A handle stays with its table through renames, and is safe to share between threads.
    """

    @takes(changes=CHANGES)
    def alter(
        self,
        changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]],
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Change the schema, options or comment; all changes land or none.

        Concurrent changes to other things land beside these. Column paths follow their columns
        when somebody else renames them meanwhile.

        Raises:
            InvalidChangeError: A rule forbids a change; nothing was written.
            CommitConflictError: Somebody else set the same thing to another value meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        asked = self._asked(changes)
        return self._commit(["alter", asked], options, lambda _: asked)

    @takes(statement=its.text)
    def sql(self, statement: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Run one `ALTER TABLE` statement, as Spark and Iceberg write it; see `ledger.sql`.

        Raises:
            InvalidInputError: It cannot be read, or is about another table.
            InvalidChangeError: A rule forbids a change; nothing was written.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://table-sql")
            >>> _ = lake.create_database("shop")
            >>> orders = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
            >>> orders.sql("ALTER TABLE shop.orders ADD COLUMN note STRING").state.schema.names
            ('id', 'note')
        """
        from ledger.sql.conditional import on_state
        from ledger.sql.statement import asked_of

        asked = asked_of(statement, self.identifier)
        return self._commit(["sql", statement], options, lambda state: on_state(asked, state))

    def update_schema(self) -> UpdateSchema:
        """Begin an update of the schema, Iceberg's way; end it with `.commit()` or `.apply()`."""
        from ledger.update_schema import UpdateSchema

        return UpdateSchema(self.state, self._commit, self._intent)

    def update_spec(self) -> UpdateSpec:
        """Begin a change of the partition spec; end it with `.commit()` or `.apply()`."""
        from ledger.update_spec import UpdateSpec

        return UpdateSpec(self)

    def replace_sort_order(self) -> ReplaceOrder:
        """Begin another sort order; end it with `.commit()` or `.apply()`."""
        from ledger.replace_sort_order import ReplaceOrder

        return ReplaceOrder(self)

    @takes(changes=CHANGES)
    def plan(self, changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]]) -> ChangePlan:
        """Return what `alter` would do with these changes, and what each format says to it.

        Raises:
            InvalidChangeError: The changes mean nothing under any format's rules.
        """
        from ledger.plan import plan_changes

        return plan_changes(self.state, self._asked(changes), self.past)

    def _asked(
        self, changes: Sequence[SchemaChange | SpecChange | Mapping[str, Any]]
    ) -> tuple[SchemaChange | SpecChange, ...]:
        load_what_commits_need()
        from ledger.evolution.wire.layout import as_table_change

        asked = tuple(map(as_table_change, changes))
        if not asked:
            raise InvalidInputError(f"{self.identifier}: no changes were given; name at least one")
        return asked

    @takes(true_time=its.moment.or_none())
    def plan_clock_correction(self, true_time: datetime | int | None = None) -> ClockPlan:
        """Return what `correct_clock` would say; nothing is written."""
        from ledger.correct_clock import plan_correction

        return plan_correction(self.log, self._setting.now_millis(), true_time)

    @takes(true_time=its.moment.or_none())
    def correct_clock(
        self, true_time: datetime | int | None = None, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Say that the commits so far took effect no later than at the true time.

        For a table that got commits by a clock that was ahead: reading by `timestamp=` is right
        again, for moments before, inside and after the range that is wrong.

        Args:
            true_time: When they happened, at the latest: a datetime with a time zone or Unix
                milliseconds; None for now, by this machine's clock.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: No commit is ahead of that time.
            InvalidInputError: It lies in the future, or the ledger is of format 1: upgrade it.
            CommitConflictError: Somebody else corrected the clock to another time meanwhile.
        """
        from ledger.correct_clock import plan_correction

        now = self._setting.now_millis()
        latest = None if true_time is None else millis(true_time)
        when: CommitOptions = {**options, "effective_time": now}
        return self._commit(
            ["correctClock", latest],
            when,
            lambda _: [plan_correction(self.log, now, latest).change],
        )

    def seal(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Write the last event of the table's stream; `Ledger.drop_table` does the rest."""
        from ledger.evolution.table.changes import DropTable

        end = DropTable(self.identifier.database, self.identifier.name)
        return self._commit(["dropTable"], options, lambda _: [end])

    @takes(format_name=its.text, version=its.whole.or_none())
    def project(self, format_name: str, *, version: int | None = None) -> int:
        """Bring a format's files, such as "paimon", up to a version; return where they stand."""
        return int(load(PROJECTIONS, format_name)(self, version=version))
