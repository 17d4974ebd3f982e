"""Metadata log: the earlier metadata files that a table's newest one names.

Each named file exists, and so does each file that one of them names. A run writes the files of the
log's versions that earlier runs skipped, before the file that names them. The versions are a
function of the table's history, whatever was projected when: a log names every version since it
began, and begins anew, empty,

- where it would be longer than `write.metadata.previous-versions-max` allows;
- after a version without a metadata file, since the table did not declare Iceberg or Iceberg could
  not express it;
- after a clock was corrected: readers reject a log with times after the file's own.

A window of the last versions would not do: its oldest file names files from before the window.

Source: the Iceberg table specification, "Table Metadata Fields", `metadata-log`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from attrs import Factory, define, frozen

from ledger.decide.format_rules import declared_rules
from ledger.model.iceberg_objects import MetadataLogEntry
from ledger.model.schema import Schema
from ledger.state.table import TableState
from projections.iceberg.position import FOLDER, IcebergPosition, Names
from projections.iceberg.table_metadata import PREVIOUS_VERSIONS
from projections.outputs import Outputs

DEFAULT_LOGGED_VERSIONS = 10
"""Greatest length of a log where the table has no property for it.

Iceberg's default is 100, but an engine writes a file for each commit anyway, and a projection that
skips commits writes those files only for the log.
"""

MOST_LOGGED_VERSIONS = 100
"""Limit of the property: the number of files that a run may have to write for the log."""

Wants = Callable[[int], bool]
"""Predicate on versions: whether one that is not the newest gets a metadata file."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


def max_logged_versions(schema: Schema) -> int:
    """Return the greatest length of a table's metadata log, from 1 to `MOST_LOGGED_VERSIONS`.

    Example:
        >>> option = "write.metadata.previous-versions-max"
        >>> [
        ...     max_logged_versions(Schema.of({"a": "INT"}, options={option: text}))
        ...     for text in ("5", "0", "many", "1000")
        ... ]
        [5, 1, 10, 100]
    """
    text = schema.options.get(PREVIOUS_VERSIONS, "")
    wanted = int(text) if _WHOLE.fullmatch(text) else DEFAULT_LOGGED_VERSIONS
    return min(max(1, wanted), MOST_LOGGED_VERSIONS)


def declares_iceberg(schema: Schema) -> bool:
    """Return whether a table declares Iceberg."""
    return "iceberg" in declared_rules(schema.options).formats


def may_be_named(version: int, target: TableState, wants: Wants) -> bool:
    """Return whether the log of a later file of a run may name a version's metadata file.

    Args:
        version: The version.
        target: The state at the version that the run reaches.
        wants: The other versions for which it writes metadata files.
    """
    later = range(version + 1, version + MOST_LOGGED_VERSIONS + 1)
    return target.version - version <= max_logged_versions(target.schema) or any(map(wants, later))


@frozen
class RetainedMetadata:
    """Metadata files of earlier versions after a run.

    Attributes:
        versions: The versions whose files stay until a later run finds them obsolete.
        requested: The versions whose files stay since a caller requested them.
        obsolete: The paths of files to delete, in this order.
    """

    versions: tuple[int, ...]
    requested: tuple[int, ...]
    obsolete: tuple[str, ...]


@define
class MetadataLog:
    """The metadata log of a table, version by version, and the files that a run writes for it.

    Attributes:
        location: The table's URI.
        names: The names of its files.
        entries: The log of the current version, oldest first; a former owner's files come before
            the ledger's.
    """

    location: str
    names: Names
    entries: list[MetadataLogEntry] = Factory(list)
    _own: int = 0
    _previous: MetadataLogEntry | None = None
    _renders: dict[int, Callable[[], bytes]] = Factory(dict)
    _written: set[int] = Factory(set)
    _found: set[int] = Factory(set)
    _requested: set[int] = Factory(set)

    @classmethod
    def at(cls, position: IcebergPosition, location: str, names: Names) -> MetadataLog:
        """Return the log of the version of a position."""
        log = cls(location, names, list(position.metadata_log))
        log._own = sum(log._is_ledger_file(each) for each in log.entries)
        return log

    def begin_after_owner(self, entries: Iterable[MetadataLogEntry]) -> None:
        """Begin with the metadata files of the table's former owner, oldest first."""
        self.entries, self._own = list(entries), 0

    def advance(self, version: int, *, most: int, updated_ms: int) -> None:
        """Move to the next version.

        Args:
            version: The version.
            most: The greatest length of its log.
            updated_ms: The time of its last update, milliseconds since 1970.
        """
        previous, self._previous = self._previous, None
        if previous is not None:
            self.entries.append(previous)
            self._own += 1
        is_newer = bool(self.entries) and self.entries[-1].timestamp_ms > updated_ms
        if self._own > most or is_newer or (self._own and previous is None):
            self.entries, self._own = [], 0
        # Only files of a former owner are removed one by one.
        del self.entries[:-most]
        for each in [each for each in self._renders if each < version - self._own]:
            del self._renders[each]

    def add_file(
        self, version: int, updated_ms: int, render: Callable[[], bytes] | None = None
    ) -> None:
        """Add the metadata file of the current version, which the log of the next one names.

        Args:
            version: The current version.
            updated_ms: The time of its last update, milliseconds since 1970.
            render: Function that returns the file's bytes; None for a file that exists already, or
                that no file of this run names.
        """
        uri = f"{self.location}/{self.names.metadata(version)}"
        self._previous = MetadataLogEntry(updated_ms, uri)
        if render is not None:
            self._renders[version] = render

    def put_files(self, outputs: Outputs) -> None:
        """Write the files that the log names and that this run skipped, oldest first."""
        for version, render in self._renders.items():
            outputs.put(self.names.metadata(version), render())
            self._written.add(version)
        self._renders.clear()

    def add_found(self, paths: Iterable[str]) -> None:
        """Add the metadata files that a first run found, and that no position lists."""
        versions = map(self.names.version_of, paths)
        self._found.update(each for each in versions if each is not None)

    def find_skipped(self, outputs: Outputs, start: IcebergPosition, version: int) -> None:
        """Add the files that killed runs wrote for versions before the log of the current one.

        Args:
            outputs: The storage of the files.
            start: The position of the previous run.
            version: The version that this run reached.
        """
        skipped = range(start.version + 1, self.versions(version).start)
        if start.version >= 0 and skipped:
            there = outputs.paths(FOLDER)
            self.add_found(each for each in there if self.names.version_of(each) in skipped)

    def request(self, version: int) -> None:
        """Keep the files of the current version and its log, since a caller requested it."""
        self._requested.update(self.versions(version))

    def versions(self, version: int) -> range:
        """Return the versions in the log of the current version, and that version."""
        return range(version - self._own, version + 1)

    def retained(self, start: IcebergPosition, version: int) -> RetainedMetadata:
        """Return the metadata files that stay after a run, and those that are obsolete.

        The files of the previous run's log stay until the next run: a catalog may still point to
        the newest of them.

        Args:
            start: The position of the previous run.
            version: The version that this run reached.
        """
        kept = {*self.versions(version)}
        if start.version >= 0:
            kept.update(MetadataLog.at(start, self.location, self.names).versions(start.version))
        requested = self._requested.union(start.requested_versions)
        found = {*start.metadata_versions, *self._found, *self._written, version} - requested
        # Later files are of a run that was killed, or runs now; the next run needs them.
        kept.update(each for each in found if each > version)
        return RetainedMetadata(
            versions=tuple(sorted(found & kept)),
            requested=tuple(sorted(requested)),
            obsolete=tuple(self._paths(sorted(found - kept, reverse=True))),
        )

    def _paths(self, versions: Iterable[int]) -> Iterator[str]:
        # A file is deleted before those that it names.
        for each in versions:
            # A killed run may have published a version that is only logged now.
            yield self.names.hadoop(each)
            yield self.names.metadata(each)

    def _is_ledger_file(self, entry: MetadataLogEntry) -> bool:
        folder = f"{self.location}/{FOLDER}/"
        if not entry.metadata_file.startswith(folder):
            return False
        name = entry.metadata_file.removeprefix(folder)
        return self.names.version_of(f"{FOLDER}/{name}") is not None
