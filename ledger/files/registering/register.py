"""Existing Parquet files as file changes, for `table.add_files`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.files.registering.bounds import lower_bound, upper_bound
from ledger.files.registering.expand import expand, ledger_names
from ledger.files.registering.facts import ColumnFacts, Footer, FooterColumn
from ledger.files.registering.footers import OnProgress, read_footers
from ledger.files.registering.hive import DEFAULT_NAME, partition_values, path_keys
from ledger.files.registering.match import Match, pairs, schema_id_of
from ledger.files.registering.metrics_modes import MetricsMode, MetricsModes, metrics_modes
from ledger.files.registering.partition_value import partition_value
from ledger.locations import FileNames
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.messages.credentials import shown
from ledger.model.schema import Schema
from ledger.model.transforms.paths import field_types
from ledger.model.types import DataField
from ledger.model.types.walk import walk_fields
from ledger.stores.objects.answers import reading

if TYPE_CHECKING:
    from ledger.files.live import LiveFiles


def data_files(
    paths: Sequence[str],
    *,
    state: TableState,
    history: Iterable[Schema],
    location: str,
    storage_options: Mapping[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[FileChange, ...]:
    """Return the file changes that add existing Parquet files, sorted by path.

    Only footers are read. Partition values are those of the default spec, from `key=value` folders
    and the files' own statistics; the schema id is that of the newest schema whose names a file
    uses.

    Args:
        paths: Files, folders or globs; paths or URLs.
        state: The table that they are for.
        history: Its schemas, newest first, the current one included; read as far as needed.
        location: The table's absolute URL.
        storage_options: What the files' backend needs.
        on_progress: Told after each file.

    Raises:
        NotFoundError: A path means no file.
        StoreError: A place does not answer, or does not let these credentials read.
        InvalidInputError: A file is no Parquet file, or the paths lie on two file systems.
        InvalidChangeError: A file's columns, ids, types or partition values do not fit the table,
            nothing says its partition values, or an option of the table is no metrics mode.
        UnsupportedError: A partition value cannot be taken from a path.
    """
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    with reading(f"{shown(paths[0])}{more}" if paths else ""):
        found = expand(paths, storage_options)
    names, modes = FileNames(location), metrics_modes(state.schema)
    footers = read_footers(
        list(found.infos),
        filesystem=found.filesystem,
        infos=found.infos,
        on_progress=on_progress,
    )
    registrar = _Registrar(state, _Replay(history), {}, modes)
    return tuple(
        registrar.file_change(*ledger_names(each.path, found.filesystem, names), each)
        for each in footers
    )


def new_files(
    paths: Sequence[str],
    *,
    live: LiveFiles,
    version: int,
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the URLs of the files that are not live in a table, sorted.

    Args:
        paths: Files, folders or globs; paths or URLs.
        live: What is live in the table.
        version: Right after which commit.
        storage_options: What the files' backend needs.

    Raises:
        NotFoundError: A path means no file.
        StoreError: A place does not answer, or does not let these credentials read.
        InvalidInputError: The paths lie on two file systems.
    """
    with reading(shown(paths[0]) if paths else ""):
        found = expand(paths, storage_options)
    urls = {
        ledger_names(each, found.filesystem, live.names)[0]: str(
            found.filesystem.unstrip_protocol(each)
        )
        for each in found.infos
    }
    spelled = {name: (name, *live.names.spellings(name)) for name in urls}
    there = live.lookup(list(dict.fromkeys(chain.from_iterable(spelled.values()))), version)
    return [url for name, url in urls.items() if there.keys().isdisjoint(spelled[name])]


class _Replay:
    """An iterable that can be read again from its start, and takes no more than was asked for."""

    def __init__(self, source: Iterable[Schema]) -> None:
        self._rest = iter(source)
        self._taken: list[Schema] = []

    def __iter__(self) -> Iterator[Schema]:
        position = 0
        while True:
            if position == len(self._taken):
                try:
                    self._taken.append(next(self._rest))
                except StopIteration:
                    return
            yield self._taken[position]
            position += 1


@frozen
class _Registrar:
    """One call's table, and the matches of the column shapes met so far."""

    state: TableState
    history: Iterable[Schema]
    matches: dict[tuple[FooterColumn, ...], Match]
    modes: MetricsModes

    def file_change(self, name: str, found: str, footer: Footer) -> FileChange:
        match = self._match(name, footer)
        partition = self._partition(found, footer, match)
        statistics = _Statistics.of(footer, match, self.modes)
        return FileChange(
            path=name,
            partition=partition,
            schema_id=match.schema_id,
            record_count=footer.record_count,
            file_size_in_bytes=footer.file_size_in_bytes,
            creation_time=footer.creation_time,
            spec_id=self.state.spec.spec_id,
            field_ids=match.field_ids,
            value_counts=statistics.value_counts,
            null_value_counts=statistics.null_value_counts,
            lower_bounds=statistics.lower_bounds,
            upper_bounds=statistics.upper_bounds,
        )

    def _match(self, name: str, footer: Footer) -> Match:
        match = self.matches.get(footer.columns)
        if match is None:
            match = schema_id_of(footer.columns, self.history, file=name)
            self.matches[footer.columns] = match
        return match

    def _partition(self, name: str, footer: Footer, match: Match) -> tuple[PartitionValue, ...]:
        schema = self.state.schema
        self._refuse_lost_values(name, footer)
        said = partition_values(
            name,
            self.state.spec,
            field_types(schema),
            default_name=schema.options.get("partition.default-name", DEFAULT_NAME),
        )
        stored = {field.id: column for column, field in pairs(footer.columns, match.schema.fields)}
        sources = {each.id: each for each in walk_fields(schema.fields)}
        return tuple(
            partition_value(name, field, value, sources.get(field.source_id), stored)
            for field, value in zip(self.state.spec.fields, said, strict=True)
        )

    def _refuse_lost_values(self, name: str, footer: Footer) -> None:
        """Refuse a file whose path alone has values of a column that does not partition it."""
        partitioning = {each.name for each in self.state.spec.fields}
        stored = {each.name for each in footer.columns}
        for key in path_keys(name):
            if key in self.state.schema.names and key not in partitioning | stored:
                raise InvalidChangeError(
                    f"file {name}: only its path says {key}, and the table is not partitioned by "
                    f"{key}, so readers would see NULL; write the column into the file"
                )


@frozen
class _Statistics:
    """A file's statistics by the table's field ids."""

    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    lower_bounds: dict[int, str]
    upper_bounds: dict[int, str]

    @classmethod
    def of(cls, footer: Footer, match: Match, modes: MetricsModes) -> _Statistics:
        found = cls({}, {}, {}, {})
        for column, field in pairs(footer.columns, match.schema.fields):
            mode = modes.of(field.id)
            if column.facts is not None and mode.counts:
                found.count(field, column.facts)
                found.bound(column, field, column.facts, mode)
        return found

    def count(self, field: DataField, facts: ColumnFacts) -> None:
        self.value_counts[field.id] = facts.value_count
        if facts.null_count is not None:
            self.null_value_counts[field.id] = facts.null_count

    def bound(
        self, column: FooterColumn, field: DataField, facts: ColumnFacts, mode: MetricsMode
    ) -> None:
        if column.type is None or mode.length == 0:
            return
        lower = lower_bound(facts, column.type, field.type, mode.length)
        upper = upper_bound(facts, column.type, field.type, mode.length)
        if lower is not None:
            self.lower_bounds[field.id] = lower
        if upper is not None:
            self.upper_bounds[field.id] = upper
