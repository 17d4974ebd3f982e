"""What an import would commit: tried as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen
from msgspec import UNSET, UnsetType

from ledger.events import TableEvent
from ledger.events.born.delta import DeltaBirth
from ledger.events.born.iceberg import IcebergBirth
from ledger.events.born.paimon import PaimonBirth
from ledger.events.commit import Outside, Transaction
from ledger.events.table_events import SchemaRecord, TableCreated, TableName
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.in_logs import check_said, parts_of_birth
from ledger.evolution.state import TableState
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.iceberg.layout import PartitionField, SortField
from ledger.model.schema import FieldIdPolicy, Schema


@frozen
class ImportedBirth:
    """What a table begins with that comes from elsewhere.

    Attributes:
        schema: Its first schema.
        born: Where it comes from.
        millis: When it was made, as far as anything tells; Unix milliseconds.
        field_id_policy: Who counts its field ids.
        partition_spec: Spec 0, if the source says one.
        sort_order: Order 1, if the source began with it.
    """

    schema: SchemaRecord
    born: IcebergBirth | PaimonBirth | DeltaBirth
    millis: int
    field_id_policy: FieldIdPolicy
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET

    def facts(self) -> dict[str, Any]:
        """Return what its creation says, by the keys of `TableCreated`, as far as there is any."""
        facts = {
            "schema": self.schema,
            "origin": self.born,
            "field_id_policy": self.field_id_policy,
            "partition_spec": self.partition_spec,
            "sort_order": self.sort_order,
        }
        return {key: each for key, each in facts.items() if each is not UNSET}

    def state(self) -> TableState:
        """Return the table as its creation will leave it, to plan on; it has no name yet.

        Raises:
            InvalidInputError: It says what no log may hold.
        """
        check_said(parts_of_birth(self.facts()), self.born.source)
        created = TableCreated(
            identifier=TableName("", ""), table_id="unborn", path="", **self.facts()
        )
        builder = TableBuilder()
        builder.begin(0, self.millis)
        builder.add(Transaction(id="", asked="", events=(created,)))
        return builder.freeze()


@frozen
class Planned:
    """One transaction to come.

    Attributes:
        events: What it says.
        millis: When that happened.
        author: Who did it, as far as the source says.
        metadata_file: The file of the source that it was read from.
        message: Why, as far as the source says.
        properties: What else the source says of it.
    """

    events: tuple[TableEvent, ...]
    millis: int
    author: str
    metadata_file: str
    message: str = ""
    properties: Mapping[str, str] = field(factory=dict, hash=False)


@define
class Trial:
    """The table as everything planned so far leaves it.

    Whoever takes thousands of steps is not held up by states that nobody asks for: to make one, all
    that the table has is copied.

    Attributes:
        now_millis: Nothing takes effect later.
    """

    _state: TableState
    now_millis: int
    _ahead: TableBuilder | None = field(default=None, init=False)

    @property
    def state(self) -> TableState:
        """The table."""
        if self._ahead is not None:
            self._state, self._ahead = self._ahead.freeze(), None
        return self._state

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self._now.schema

    @property
    def _now(self) -> TableState | TableBuilder:
        return self._state if self._ahead is None else self._ahead

    def after(self, events: Iterable[TableEvent], millis: int, author: str) -> TableState:
        """Return the table after more events; it stays as it is.

        Args:
            events: They.
            millis: When they happened; what is earlier than what came before happened with it.
            author: Who did it.

        Raises:
            UnsupportedError: The ledger cannot hold them; the message says why.
        """
        builder = TableBuilder(self.state)
        self._add(builder, tuple(events), self._moment(millis), author)
        return builder.freeze()

    def take(
        self, events: Iterable[TableEvent], millis: int, author: str, metadata_file: str
    ) -> Planned:
        """Go on to the table after more events, and return the transaction that says them.

        Where they are refused, nothing more can be tried.

        Raises:
            UnsupportedError: As of `after`.
            InvalidInputError: They say what no log may hold; the message names the file.
        """
        said, moment = tuple(events), self._moment(millis)
        check_said(said, metadata_file)
        if self._ahead is None:
            self._ahead = TableBuilder(self._state)
        self._add(self._ahead, said, moment, author)
        return Planned(said, moment, author, metadata_file)

    def _add(
        self, builder: TableBuilder, said: tuple[TableEvent, ...], moment: int, author: str
    ) -> None:
        builder.begin(builder.version + 1, max(builder.time_millis, moment))
        # Where nobody is named in lines, it says so.
        who: dict[str, Any] = {"outside": Outside()} if builder.keeps_outside else {}
        told = Transaction[TableEvent](
            id="",
            asked="",
            effective_time_millis=moment,
            events=said,
            **(who or {"author": author}),
        )
        try:
            builder.add(told)
        except InvalidChangeError as error:
            raise UnsupportedError(
                f"the ledger cannot hold what the source says: {error}"
            ) from error

    def _moment(self, millis: int) -> int:
        """Return when something takes effect: never before what came earlier, never in future."""
        return min(max(self._now.effective_millis, millis), self.now_millis)
