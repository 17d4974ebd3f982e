"""Metadata files of an Iceberg table: the newest one in a folder, and their order.

Only a catalog knows the current metadata file of its table. A Hadoop table has
`version-hint.text` and numbered files, and its newest file is found as Java finds it
(HadoopTableOperations); other folders have the numbers that catalogs give to their files.

A dropped table can leave its files in the folder of its successor, whose numbers begin again: a
folder with files of several tables is rejected.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from attrs import evolve, field, frozen

from ledger.model.errors import (
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    TooLargeError,
)
from ledger.model.iceberg_objects import MAIN, SnapshotRef
from ledger.model.types import INT_MAX
from ledger.state.iceberg_origin import IcebergOrigin
from projections.iceberg.table_json import ParsedMetadataFile, read_after, table_uuid_of
from projections.iceberg.table_metadata import CLOCK_TOLERANCE_MS, TableMetadata
from projections.importing.trial import SourceFiles

Read = Callable[[str], bytes]
"""Function that returns a file's bytes; raises OSError if it is missing or not readable."""

HINT_FILE: Final = "version-hint.text"

_ENDINGS: Final = (".gz.metadata.json", ".metadata.json.gz", ".metadata.json")
_PREFERRED: Final = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
"""Java's order of preference for files of one version."""

_is_hadoop_stem: Final = re.compile(r"v(0|[1-9][0-9]*)").fullmatch
_is_catalog_stem: Final = re.compile(r"([0-9]+)(?:-.*)?").fullmatch
# A Hadoop writer names its file by a UUID until it renames it.
_is_uuid: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
).fullmatch
_is_java_integer: Final = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_is_line_end: Final = re.compile(r"[\r\n]")


@frozen
class MetadataFile:
    """A metadata file and its content.

    Attributes:
        url: Its URL.
        file: The parsed file.
        metadata: Its content, with `main` among its refs even if an older writer left it out.
    """

    url: str
    file: ParsedMetadataFile = field(repr=False, eq=False)
    metadata: TableMetadata

    @property
    def name(self) -> str:
        """Its name in its folder."""
        return posixpath.basename(self.url)

    @classmethod
    def parse(cls, url: str, body: bytes, known: ParsedMetadataFile | None) -> MetadataFile:
        """Parse a metadata file.

        Args:
            url: Its URL.
            body: Its bytes.
            known: A metadata file that was read before; unchanged parts are not parsed again.

        Raises:
            UpgradeRequiredError, InvalidInputError, TooLargeError: As of `read_after`.
        """
        file = read_after(body, known)
        return cls(url, file, _with_main_branch(file.metadata))


def read_metadata_file(url: str, read: Read, known: ParsedMetadataFile | None) -> MetadataFile:
    """Read a metadata file.

    Args:
        url: Its URL.
        read: Function that reads it.
        known: A metadata file that was read before; unchanged parts are not parsed again.

    Raises:
        NotFoundError: It does not exist.
        StoreError: It cannot be read.
        InvalidInputError: It is not Iceberg table metadata, or is cut short.
        TooLargeError: It is too large.
    """
    try:
        body = read(url)
    except FileNotFoundError as error:
        raise NotFoundError(f"{url} does not exist; name a metadata file, or a folder") from error
    except OSError as error:
        raise StoreError(f"{url} cannot be read: {error}") from error
    try:
        return MetadataFile.parse(url, body, known)
    except TooLargeError as error:
        raise TooLargeError(f"{url}: {error}") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"{url} is not Iceberg table metadata: {error}") from error


def _with_main_branch(metadata: TableMetadata) -> TableMetadata:
    """Return metadata with the branch `main`, which older writers left implicit."""
    current = metadata.current_snapshot_id
    if current is None or MAIN in metadata.refs:
        return metadata
    main = SnapshotRef(snapshot_id=current, type="branch")
    return evolve(metadata, refs={**metadata.refs, MAIN: main})


def is_metadata_file(path: str) -> bool:
    """Return whether a path or URL has the name of a metadata file, plain or gzip.

    Example:
        >>> is_metadata_file("/t/metadata/v3.gz.metadata.json"), is_metadata_file("/t")
        (True, False)
    """
    return path.endswith(_ENDINGS)


def read_newest_metadata_file(
    folder: str,
    files: SourceFiles,
    known: ParsedMetadataFile | None = None,
    origin: IcebergOrigin | None = None,
) -> MetadataFile:
    """Read the newest metadata file of a table's folder.

    Args:
        folder: The folder that contains `metadata/`.
        files: Reads its files.
        known: A metadata file that was read before; unchanged parts are not parsed again.
        origin: The imported table that follows the folder; only files written since its last
            import are then checked for other tables.

    Raises:
        NotFoundError: There is no such folder, or the newest file does not exist.
        StoreError: It cannot be read.
        InvalidInputError: It has no metadata file, those of several tables, or none that is the
            newest for certain.
    """
    inside = f"{folder}/metadata"
    try:
        written = files.written(inside)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{folder} holds no Iceberg table: it has no folder metadata/"
        ) from error
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error}") from error
    names = sorted(filter(is_metadata_file, written))
    if not names:
        raise InvalidInputError(f"{inside} holds no metadata file of an Iceberg table")
    followed = "" if origin is None else posixpath.basename(origin.metadata_file)
    since = written.get(followed, 0)
    _reject_several_tables(inside, [each for each in names if written[each] >= since], files.read)
    hint = None
    if HINT_FILE in written:
        with suppress(OSError, LedgerError):
            hint = files.read(f"{inside}/{HINT_FILE}")
    newest: MetadataFile | None = None
    for name in newest_metadata_files(inside, names, hint):
        found = read_metadata_file(f"{inside}/{name}", files.read, known)
        newest = found if newest is None or is_later(found, newest) else newest
    if newest is None:
        raise AssertionError("a folder with metadata files has a newest one")
    if origin is not None and not is_same_table(origin.table_uuid, newest.metadata.table_uuid):
        _reject_several_tables(inside, names, files.read)
    return newest


def is_same_table(one: str | None, other: str | None) -> bool:
    """Return whether two table UUIDs are equal, ignoring case."""
    return (one or "").lower() == (other or "").lower()


def _reject_several_tables(folder: str, names: Sequence[str], read: Read) -> None:
    """Reject a folder with metadata files of several tables; unreadable files are ignored."""
    newest_of: dict[str, str] = {}
    for name in names if len(names) > 1 else ():
        with suppress(OSError, LedgerError):
            if found := table_uuid_of(read(f"{folder}/{name}")):
                newest_of[found.lower()] = name
    if len(newest_of) < 2:  # noqa: PLR2004 - one table, or one from before there were UUIDs
        return
    said = ", ".join(f"{name} (uuid {uuid})" for uuid, name in sorted(newest_of.items()))
    raise InvalidInputError(
        f"{folder} holds metadata files of {len(newest_of)} tables: {said}. A table was dropped, "
        "and another one created in its folder; nothing was imported. Name the table as "
        "CATALOG:NAMESPACE.TABLE, or name its current metadata file, or move the metadata files of "
        "the dropped table away"
    )


def newest_metadata_files(
    folder: str, names: Collection[str], hint: bytes | None
) -> tuple[str, ...]:
    """Return the newest metadata file of each kind of naming in a folder, by name alone.

    Hadoop tables name files `vN.metadata.json`. As in Java, a hint that is an integer names the
    version to start at, and later ones that exist without a gap are newer; without such a hint the
    highest version is the newest. Catalogs name files `NNNNN-UUID.metadata.json`, and the highest
    number is the newest. A folder can have both kinds, such as a table that was moved to a catalog:
    its content decides then, see `is_later`.

    Args:
        folder: The folder, for messages.
        names: The names of its metadata files.
        hint: The content of `version-hint.text`; None without one.

    Returns:
        One name, or several of different kinds; that of a Hadoop table first.

    Raises:
        InvalidInputError: The hinted version does not exist, or no file is the newest for certain.

    Source: org.apache.iceberg.hadoop.HadoopTableOperations, `findVersion` and `refresh`.

    Example:
        >>> newest_metadata_files("t", ["v1.metadata.json", "v2.gz.metadata.json"], b"1")
        ('v2.gz.metadata.json',)
        >>> newest_metadata_files("t", ["00000-a.metadata.json", "00001-b.metadata.json"], None)
        ('00001-b.metadata.json',)
    """
    by_stem = _preferred_name_by_stem(names)
    line = _is_line_end.split((hint or b"").decode(errors="replace"), maxsplit=1)[0]
    hinted = _hinted_name(line, by_stem)
    found = (
        _newest_hadoop_file(folder, by_stem, line),
        _newest_catalog_file(folder, by_stem, hinted),
        hinted if _name_number(hinted) is None else "",
    )
    if not any(found):
        raise InvalidInputError(
            f"nothing tells which file of {folder} is the newest: name it itself"
        )
    return tuple(filter(None, found))


def _preferred_name_by_stem(names: Iterable[str]) -> dict[str, str]:
    """Return the files by name without ending; of plain and gzip files that Java prefers."""
    found: dict[str, str] = {}
    for name in sorted(names, key=lambda each: -_PREFERRED.index(_ending_of(each))):
        found[name.removesuffix(_ending_of(name))] = name
    return found


def _ending_of(name: str) -> str:
    return next(each for each in _ENDINGS if name.endswith(each))


def _hinted_name(line: str, by_stem: dict[str, str]) -> str:
    """Return the file that a hint names, with or without folder and ending; empty for none."""
    name = posixpath.basename(line.strip())
    return by_stem.get(name.removesuffix(_ending_of(name)) if is_metadata_file(name) else name, "")


def _newest_hadoop_file(folder: str, by_stem: dict[str, str], line: str) -> str:
    versions = {
        int(matched[1]): name
        for stem, name in by_stem.items()
        if (matched := _is_hadoop_stem(stem))
    }
    if not versions:
        return ""
    if not _is_java_integer(line):
        return versions[max(versions)]
    version = int(line)
    if version not in versions and version > INT_MAX:
        # Java reads no such number, and takes the highest one.
        return versions[max(versions)]
    if version not in versions:
        raise InvalidInputError(
            f"{folder}/{HINT_FILE} says version {version}, and there is no "
            f"v{version}.metadata.json; the newest one there is {versions[max(versions)]}. Its "
            "newest files are lost, or were not copied: restore them, or name the metadata file "
            "to import"
        )
    while version + 1 in versions:
        version += 1
    return versions[version]


def _newest_catalog_file(folder: str, by_stem: dict[str, str], hinted: str) -> str:
    numbered: defaultdict[int, list[str]] = defaultdict(list)
    for stem, name in sorted(by_stem.items()):
        if (matched := _is_catalog_stem(stem)) and not _is_uuid(stem):
            numbered[int(matched[1])].append(name)
    if not numbered:
        return ""
    highest = numbered[max(numbered)]
    if len(highest) == 1:
        return highest[0]
    if hinted in highest:
        return hinted
    raise InvalidInputError(
        f"{folder} has {len(highest)} files of the highest number, {highest[0]} and {highest[1]}: "
        "name the one that is the table's"
    )


def _name_number(name: str) -> tuple[bool, int] | None:
    """Return the number in a metadata file's name, after whether it is a Hadoop table's."""
    if not is_metadata_file(name):
        return None
    stem = name.removesuffix(_ending_of(name))
    if matched := _is_hadoop_stem(stem):
        return True, int(matched[1])
    matched = None if _is_uuid(stem) else _is_catalog_stem(stem)
    return None if matched is None else (False, int(matched[1]))


def is_later(one: MetadataFile, other: MetadataFile) -> bool:
    """Return whether a metadata file of a table was certainly written after another one.

    Sequence numbers never decrease. Clocks of writers differ by up to a minute; within it, a file
    is later if its log names the other, or if its number is higher, too.

    Args:
        one: The file.
        other: Another file of the same table.
    """
    mine, its = one.metadata, other.metadata
    if mine.last_sequence_number != its.last_sequence_number:
        return mine.last_sequence_number > its.last_sequence_number
    millis = mine.last_updated_ms - its.last_updated_ms
    if abs(millis) > CLOCK_TOLERANCE_MS:
        return millis > 0
    is_after, is_before = _log_names(one, other), _log_names(other, one)
    if is_after != is_before:
        return is_after
    number, others = _name_number(one.name), _name_number(other.name)
    if number is None or others is None or number[0] != others[0]:
        return False
    return millis > 0 and number[1] > others[1]


def _log_names(file: MetadataFile, other: MetadataFile) -> bool:
    """Return whether a file's metadata log has the name of another file."""
    named = (posixpath.basename(each.metadata_file) for each in file.metadata.metadata_log)
    return other.name in named


def in_commit_order(files: Sequence[MetadataFile]) -> list[MetadataFile]:
    """Return files of a metadata log in the order in which they were written.

    That is the log's order, unless a file in it is certainly later than the next one.

    Args:
        files: The files, in the log's order.
    """
    if not any(is_later(one, other) for one, other in pairwise(files)):
        return list(files)
    return sorted(
        files, key=lambda each: (each.metadata.last_sequence_number, each.metadata.last_updated_ms)
    )
