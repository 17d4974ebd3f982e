"""Feed of the commits of many tables, which asks only the tables that may have changed.

At each trigger the feed reads the catalog's new commits and the last folders of the activity index,
and probes the heads of the tables that these name, and a few further ones in rotation. The range
between two offsets is the same in every attempt: names are those at the offset's catalog version.
Dropped tables stay in the feed, so that their last events are in it; tables that a copy of a ledger
left to its original do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final, Literal

from attrs import define, field

from ledger.events.table import TableCreated
from ledger.history.older import TableLog
from ledger.ledger_handle import LedgerHandle
from ledger.log.activity import first_complete_slot, read_activity, slot_of
from ledger.log.request import NowMillis, now_millis
from ledger.model.errors import DamagedLogError, InvalidInputError
from ledger.model.names import Identifier
from ledger.state.catalog_builder import LiveOrDroppedTable, LiveOrDroppedTables
from ledger.stores.concurrency import answers
from ledger.table_handle import handle_of
from projections.source.feed_offset import FeedOffset, Offset, PositionFiles
from projections.source.span_reading import Span, SpanEnd, version_ranges
from projections.spark_tasks import LedgerLocation, TablePlace

Starting = Literal["earliest", "latest"]

PROBED_IN_ROTATION: Final = 4
"""Number of tables that a trigger probes although nothing says that they changed."""

NAMES_PER_TABLE: Final = 1000
"""Names that one request lists: reading more of them for each table costs more than probing it."""


@define
class CommitFeed:
    """Feed of the commits of a ledger's tables; a renamed table continues under its new name.

    Attributes:
        root: The ledger.
        has: Returns whether a table of a name is followed.
        starting: Start of a new stream.
        versions_per_span: The number of commits in a span, at most.
        now_millis: The clock.
    """

    root: LedgerLocation
    has: Callable[[Identifier], bool]
    starting: Starting
    versions_per_span: int
    now_millis: NowMillis = now_millis
    _catalog: _CatalogTables = field(init=False)
    _files: PositionFiles = field(init=False)
    _heads: dict[str, int] = field(factory=dict, init=False)
    _probed: dict[str, int] = field(factory=dict, init=False)
    _rotation: deque[str] = field(factory=deque, init=False)
    _slot: int | None = field(default=None, init=False)
    _first_slot: int | None = field(default=None, init=False)
    _last: FeedOffset | None = field(default=None, init=False)
    _has_end: bool = field(default=False, init=False)

    @_catalog.default
    def _default_catalog(self) -> _CatalogTables:
        return _CatalogTables(self.root, self.has)

    @_files.default
    def _default_files(self) -> PositionFiles:
        return PositionFiles(self.root.setting().store)

    def initial(self) -> Offset:
        """Return the start of a new stream: before the first commit, or the heads."""
        if self.starting == "latest":
            return self.latest()
        self._last = FeedOffset(-1, None, {})
        return self._last.as_json()

    def stop_at_heads(self) -> None:
        """End the feed at the heads that the next call of `latest` finds."""
        self._has_end = True

    def latest(self, start: Offset | None = None, most: int | None = None) -> Offset:
        """Return the end of the next batch; the start itself if there is nothing new.

        Args:
            start: The end of the batch before; None where Spark does not pass it on.
            most: The number of commits to read, at most; needs `start`.

        Raises:
            InvalidInputError: The start is no offset of this ledger, or its positions are gone.
            StoreError: The positions are too many for an offset, and cannot be written.
        """
        before = self._last if start is None else FeedOffset.of_json(start)
        begun = {} if before is None else self._files.positions(before)
        if not self._has_end or self._slot is None:
            self._read_heads(before, begun)
        reached = {key: max(head, begun.get(key, -1)) for key, head in self._heads.items()}
        heads, turn = {**begun, **reached}, None
        ends = heads
        if most is not None:
            order = [each.table_id for each in self._catalog.selected()]
            ends, turn = limit_commits(
                begun, heads, order, most, None if before is None else before.turn
            )
        if before is not None and ends == begun:
            return before.as_json() if start is None else start
        # Announcements of commits that were found and not yet read are needed after a restart.
        slot = self._slot if ends == heads else before.slot if before is not None else None
        if start is None:
            # Spark does not say where the query is after a restart, either: then the offset is the
            # same as before it where nothing is new.
            slot = None
        base = (None, None) if before is None else (before.base, before.replaced)
        wanted = FeedOffset(self._catalog.touched_version, slot, {}, *base, turn)
        self._last = self._files.offset(ends, wanted, self.now_millis())
        return self._last.as_json()

    def spans(self, start: Offset, end: Offset) -> list[Span]:
        """Return the spans between two offsets; each version is in one of them.

        Raises:
            InvalidInputError: An offset is not of this ledger, or its positions are gone.
        """
        until = FeedOffset.of_json(end)
        begun = self._files.positions(FeedOffset.of_json(start))
        ends = self._files.positions(until)
        tables = {each.table_id: each for each in self._catalog.at(until.catalog)}
        for table_id, version in ends.items():
            if version > begun.get(table_id, -1) and table_id not in tables:
                raise InvalidInputError(
                    f"the stream's checkpoint names table {table_id}, which the catalog of "
                    f"{self.root.url} does not have at version {until.catalog}: it belongs "
                    "to another ledger; start the query with another checkpoint location"
                )
        return [
            span
            for table_id, table in tables.items()
            for span in self._spans_of_table(
                table, begun.get(table_id, -1) + 1, ends.get(table_id, -1)
            )
        ]

    def commit(self, end: Offset) -> None:
        """Delete the positions that the feed does not need once a batch is committed."""
        replaced = FeedOffset.of_json(end).replaced
        if replaced is not None:
            # `maintain` removes it otherwise.
            with suppress(OSError):
                self._files.remove(replaced)

    def _spans_of_table(self, table: LiveOrDroppedTable, first: int, last: int) -> Iterator[Span]:
        place = _place_of(table)
        for low, high in version_ranges(first, last, self.versions_per_span):
            yield Span(self.root, place, low, SpanEnd(high))

    def _read_heads(self, before: FeedOffset | None, begun: Mapping[str, int]) -> None:
        """Update the known heads of the selected tables."""
        slot = slot_of(self.now_millis())
        since, position = self._slot, None if before is None else before.catalog
        self._catalog.read()
        tables = {each.table_id: each for each in self._catalog.selected()}
        if since is None and before is not None and before.slot is not None:
            # The first call after a restart that knows where the query is.
            since = before.slot
            self._heads = {key: each for key, each in begun.items() if key in tables}
            self._catalog.touch_since(position)
        announced = self._read_activity(tables, since, slot)
        wanted: Collection[str] = tables
        if announced is None:
            announced = {}
        else:
            wanted = self._tables_to_probe(tables, announced)
        probed = [tables[each] for each in wanted]
        heads = answers(lambda each: self._probe(each, announced.get(each.table_id, -1)), probed)
        for table, head in zip(probed, heads, strict=True):
            self._probed[table.table_id] = announced.get(table.table_id, -1)
            if head >= 0:
                self._heads[table.table_id] = head
        self._catalog.touched.clear()
        self._slot = slot

    def _read_activity(
        self, tables: Mapping[str, LiveOrDroppedTable], since: int | None, slot: int
    ) -> dict[str, int] | None:
        """Return the announced versions since a slot; None where every table has to be probed."""
        live = [each for each in tables.values() if each.dropped_millis is None]
        if len(live) <= PROBED_IN_ROTATION:
            # All are probed at each trigger.
            return None if since is None else {}
        if self._first_slot is None:
            self._first_slot = first_complete_slot(self._files.store, slot)
        if since is None or self._first_slot is None or since < self._first_slot:
            return None
        most = NAMES_PER_TABLE * len(tables)
        # From the slot before, since announcements are late, or of a clock that is behind.
        return read_activity(self._files.store, since - 1, max(slot, since), most)

    def _tables_to_probe(
        self, tables: Mapping[str, LiveOrDroppedTable], announced: Mapping[str, int]
    ) -> list[str]:
        """Return the tables that may have changed, and the next ones of the rotation."""
        wanted = dict.fromkeys(each for each in self._catalog.touched if each in tables)
        for table_id, version in announced.items():
            # An announcement may be wrong; it is looked into once.
            newest = max(self._heads.get(table_id, -1), self._probed.get(table_id, -1))
            if version > newest and table_id in tables:
                wanted[table_id] = None
        if not self._rotation:
            self._rotation.extend(
                key for key, each in tables.items() if each.dropped_millis is None
            )
        for _ in range(min(PROBED_IN_ROTATION, len(self._rotation))):
            table_id = self._rotation.popleft()
            if table_id in tables:
                wanted[table_id] = None
        return list(wanted)

    def _probe(self, table: LiveOrDroppedTable, announced: int) -> int:
        """Return the newest version of a table; -1 before version 0."""
        handle = _place_of(table).open(self.root)
        log = handle.log
        known = self._heads.get(table.table_id, -1)
        if known >= 0:
            return newest_version(log, known, announced)
        key = log.layout.commit(0)
        body = log.store.read(key)
        if body is None:
            # Created in the catalog; the first opening of the table writes its version 0.
            log.reader.refuse_hidden_gap(0, strides=(1,))
            return -1
        for event in log.codec.decode(body, key).transactions[0].events:
            if isinstance(event, TableCreated) and event.table_id != table.table_id:
                raise DamagedLogError(
                    f"{handle.location} holds the stream of table {event.table_id}, but the "
                    f"catalog says {table.table_id}",
                    key,
                )
        head = newest_version(log, 0, max(log.checkpoints.read_hint(), announced))
        log.reader.refuse_hidden_gap(head + 1, strides=(1,))
        return head


def _place_of(table: LiveOrDroppedTable) -> TablePlace:
    return TablePlace(str(table.identifier), table.table_id, table.path)


def newest_version(log: TableLog, known: int, hint: int = -1) -> int:
    """Return the newest version of a log, with one request where nothing was committed.

    Args:
        log: The log.
        known: A version that exists.
        hint: A later version that may exist.
    """

    def exists(version: int) -> bool:
        return log.store.exists(log.layout.commit(version))

    low, stride = (hint, 1) if hint > known and exists(hint) else (known, 1)
    while exists(low + stride):
        low, stride = low + stride, stride * 2
    while stride > 1:
        stride //= 2
        if exists(low + stride):
            low += stride
    return low


def limit_commits(
    begun: Mapping[str, int],
    heads: Mapping[str, int],
    order: Sequence[str],
    most: int,
    turn: str | None,
) -> tuple[dict[str, int], str | None]:
    """Return the ends of a batch with at most `most` commits, and the table served last.

    Each table's commits are taken oldest first. The tables with new commits get equal shares; if
    there are more of them than commits, they get one each, in their order, from the one after
    `turn` on.

    Args:
        begun: Versions read last, by table id.
        heads: Newest versions.
        order: The tables, in the order of their creation.
        most: The number of commits, at most; at least 1.
        turn: The table that the batch before served last.

    Example:
        >>> limit_commits({}, {"a": 9, "b": 0, "c": 4}, ["a", "b", "c"], 7, None)
        ({'b': 0, 'c': 2, 'a': 2}, None)
        >>> limit_commits({}, {"a": 9, "b": 0, "c": 4}, ["a", "b", "c"], 2, "b")
        ({'c': 0, 'a': 0}, 'a')
    """
    first = order.index(turn) + 1 if turn in order else 0
    counts = {
        each: heads[each] - begun.get(each, -1)
        for each in [*order[first:], *order[:first]]
        if heads.get(each, -1) > begun.get(each, -1)
    }
    is_crowded = len(counts) > most
    served = list(counts)[:most]
    ends, left = dict(begun), most
    # Those with few commits first, so that others get what they leave.
    for place, each in enumerate(sorted(served, key=counts.__getitem__)):
        share = min(counts[each], left // (len(served) - place))
        ends[each] = begun.get(each, -1) + share
        left -= share
    return ends, served[-1] if is_crowded else None


@define
class _CatalogTables:
    """The selected tables of a catalog, followed commit by commit.

    Attributes:
        root: The ledger.
        has: Returns whether a table of a name is followed.
        touched: Ids of the tables that commits read since the last probing name.
        version: The catalog's version.
    """

    root: LedgerLocation
    has: Callable[[Identifier], bool]
    touched: set[str] = field(factory=set)
    version: int = -1
    _ledger: LedgerHandle | None = None
    _tables: LiveOrDroppedTables = field(factory=LiveOrDroppedTables)
    _last_touch: dict[str, int] = field(factory=dict)

    def read(self) -> None:
        """Read the new commits of the catalog."""
        for commit in self._opened().events(self.version + 1):
            self._tables.learn(commit)
            for transaction in commit.transactions:
                for event in transaction.events:
                    table_id = getattr(event, "table_id", None)
                    if isinstance(table_id, str):
                        self._last_touch[table_id] = commit.version
                        self.touched.add(table_id)
            self.version = commit.version

    def touch_since(self, version: int | None) -> None:
        """Forget the touches up to a catalog version; None: forget none."""
        if version is not None:
            self.touched = {key for key in self.touched if self._last_touch[key] > version}

    def selected(self) -> list[LiveOrDroppedTable]:
        """Return the selected tables that were read, dropped ones included, oldest first."""
        return self._select(self._tables)

    def at(self, version: int | None) -> list[LiveOrDroppedTable]:
        """Return the selected tables, with their names at a version of the catalog; None: now."""
        if version is None or version > self.version:
            self.read()
        if version is None or version >= self.touched_version:
            return self.selected()
        commits = self._opened().events()
        return self._select(
            LiveOrDroppedTables.of(takewhile(lambda each: each.version <= version, commits))
        )

    @property
    def touched_version(self) -> int:
        """The newest version that named a selected table."""
        named = (self._last_touch[each.table_id] for each in self.selected())
        return max(named, default=-1)

    def _select(self, tables: Iterable[LiveOrDroppedTable]) -> list[LiveOrDroppedTable]:
        return [each for each in tables if any(self.has(name) for _, name in each.names)]

    def _opened(self) -> LedgerHandle:
        if self._ledger is None:
            self._ledger = handle_of(self.root.open())
        return self._ledger
