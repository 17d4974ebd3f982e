"""Files of snapshots, tags and consumers.

Snapshots of every version are read, version 3 is written. A tag is a snapshot and its retention; a
consumer holds the progress of a stream.

Source: Paimon's Snapshot, Tag and Consumer classes; Jackson's forms of LocalDateTime and Duration.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from attrs import evolve, frozen

from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.snapshot import CommitKind, Snapshot
from ledger.stores.base import is_key
from projections.paimon.schema_file import decode_file, paimon_json

SNAPSHOT_VERSION: Final = 3
"""Version of the snapshot files that engines write."""

NO_WATERMARK = -(2**63)
"""Older writers' value for "no watermark": Java's Long.MIN_VALUE."""

_PRINTED_WHEN_NULL = ("baseManifestList", "deltaManifestList", "commitUser")
_Id = Annotated[int, msgspec.Meta(ge=0)]


class _SnapshotFile(msgspec.Struct, kw_only=True, rename="camel"):
    """The keys of the file, in Paimon's order."""

    version: int | None = None
    uuid: str | None = None
    id: _Id
    schema_id: int | None = None
    base_manifest_list: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list: str | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str | None = None
    writer_version: str | None = None
    commit_identifier: int | None = None
    commit_kind: CommitKind
    time_millis: int | None = None
    log_offsets: dict[int, int] | None = None
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: dict[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None


_NAMES = {each.encode_name: each.name for each in msgspec.structs.fields(_SnapshotFile)}

SNAPSHOT_KEYS = frozenset(_NAMES)
"""The keys of a snapshot file that this module reads."""


def snapshot_from_json(obj: Mapping[str, Any] | str | bytes) -> Snapshot:
    """Read a snapshot file of any version.

    As in Paimon, a missing or null number reads as 0 and unknown keys are ignored. A null
    `commitUser` reads as empty, and the Long.MIN watermark of old writers as none.

    Args:
        obj: The file's bytes or text, or its decoded JSON.

    Raises:
        InvalidInputError: It is no snapshot file; the message names the place.

    Example:
        >>> snapshot = snapshot_from_json('{"id": 1, "commitKind": "APPEND", "watermark": null}')
        >>> snapshot.id, snapshot.total_record_count, snapshot.base_manifest_list
        (1, 0, None)
    """
    file = decode_file(obj, _SnapshotFile, "snapshot file")
    found = msgspec.structs.asdict(file)
    numbers = ("version", "schema_id", "commit_identifier", "time_millis")
    counts = ("total_record_count", "delta_record_count")
    return Snapshot(
        **{
            **found,
            **{name: found[name] or 0 for name in (*numbers, *counts)},
            "commit_user": file.commit_user or "",
            "watermark": None if file.watermark == NO_WATERMARK else file.watermark,
            "log_offsets": file.log_offsets or None,
            "properties": file.properties or None,
        }
    )


def snapshot_as_written(obj: Mapping[str, Any] | str | bytes) -> Snapshot:
    """Read a snapshot file as `snapshot_from_json` does, with the lowest watermark kept.

    Args:
        obj: As of `snapshot_from_json`.

    Raises:
        InvalidInputError: It is no snapshot file; the message names the place.
    """
    watermark = decode_file(obj, _SnapshotFile, "snapshot file").watermark
    return evolve(snapshot_from_json(obj), watermark=watermark)


def snapshot_of_request(content: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of an engine's request, which is recorded key by key.

    Args:
        content: The decoded JSON of the snapshot.

    Raises:
        InvalidInputError: A key or a value of it cannot be kept; the message names the key.

    Example:
        >>> document = {"version": 3, "id": 1, "schemaId": 0, "commitKind": "APPEND", "tables": 2}
        >>> snapshot_of_request(document)
        Traceback (most recent call last):
        ...
        ledger.model.errors.InvalidInputError: ...
    """
    found = snapshot_from_json(content)
    # The lowest number means none in old files; here it is what the engine says.
    found = evolve(found, watermark=content.get("watermark"))
    rendered = snapshot_to_json(found)
    for key, value in content.items():
        is_absent = value is None or value == {}
        kept = rendered.get(key)
        if not is_absent and kept != value:
            raise InvalidInputError(
                f"snapshot {found.id}: the ledger cannot keep {key}={excerpt(value)}"
                + ("" if key in SNAPSHOT_KEYS else ", which is no key of a snapshot that it knows")
                + "; nothing was committed"
            )
    if found.version != SNAPSHOT_VERSION:
        raise InvalidInputError(
            f"snapshot {found.id} has version {found.version}; engines commit version "
            f"{SNAPSHOT_VERSION}. Nothing was committed"
        )
    check_file_names(found, f"snapshot {found.id}")
    _check_texts(found)
    return found


_MOST_USER: Final = 1_024
"""In characters."""

_MOST_TEXT: Final = 64 << 10
"""In bytes: all texts of a snapshot, which each state and each reader of the log holds."""


def _check_texts(snapshot: Snapshot) -> None:
    """Check that the texts that an engine gives a snapshot are not too long."""
    if len(snapshot.commit_user) > _MOST_USER:
        raise InvalidInputError(
            f"snapshot {snapshot.id}: commitUser has {len(snapshot.commit_user)} characters; it "
            f"has at most {_MOST_USER}. Nothing was committed"
        )
    values = (getattr(snapshot, each) for each in _NAMES.values())
    texts = [each for each in values if isinstance(each, str)]
    pairs = (snapshot.properties or {}).items()
    counted = (*texts, *(part for pair in pairs for part in pair))
    size = sum(len(each.encode("utf-8", "replace")) for each in counted)
    if size > _MOST_TEXT:
        raise InvalidInputError(
            f"snapshot {snapshot.id}: properties and other texts have {size} bytes; together they "
            f"have at most {_MOST_TEXT}. Nothing was committed"
        )


def is_same_snapshot(known: Snapshot, wanted: Snapshot) -> bool:
    """Return whether an imported snapshot is the current one of that id: ids are reused."""
    return _comparable(known) == _comparable(wanted)


def _comparable(snapshot: Snapshot) -> Snapshot:
    # A recorded request keeps the watermark that files are read without.
    watermark = None if snapshot.watermark == NO_WATERMARK else snapshot.watermark
    return evolve(snapshot, time_millis=0, version=3, watermark=watermark)


def check_file_names(snapshot: Snapshot, what: str) -> None:
    """Check that the file names in a snapshot are names of files.

    Args:
        snapshot: The snapshot.
        what: Its name, for the message.

    Raises:
        InvalidInputError: One is not.
    """
    for key in _FILE_NAMES:
        name = getattr(snapshot, key)
        if name is not None and not _is_file_name(name):
            raise InvalidInputError(
                f"{what}: its {key.replace('_', ' ')} {excerpt(name)} is not a file name"
            )


_FILE_NAMES: Final = (
    *("base_manifest_list", "delta_manifest_list", "changelog_manifest_list"),
    *("index_manifest", "statistics"),
)
"""The snapshot fields that hold file names."""

_LONGEST_NAME: Final = 255
"""In bytes: the limit of file systems."""


def _is_file_name(name: str) -> bool:
    return is_key(name) and "/" not in name and len(name.encode()) <= _LONGEST_NAME


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the content of a snapshot file, keys in Paimon's order.

    None values and empty properties are left out, but not the manifest lists, which Paimon prints
    as null. `logOffsets`, which Paimon dropped, is written where the snapshot has some.
    """
    content: dict[str, Any] = {key: getattr(snapshot, name) for key, name in _NAMES.items()}
    content["logOffsets"] = {
        str(bucket): offset for bucket, offset in sorted((snapshot.log_offsets or {}).items())
    }
    content["properties"] = dict(sorted((snapshot.properties or {}).items()))
    return {
        key: value
        for key, value in content.items()
        if key in _PRINTED_WHEN_NULL or (value is not None and value != {})
    }


def snapshot_file(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot file, as Paimon's Java writes them."""
    return paimon_json(snapshot_to_json(snapshot)).encode()


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock without a zone
_MILLISECOND = dt.timedelta(milliseconds=1)
_MOST_SECONDS = 2**63 // 1000
_NANOS_OF_MILLI = 1_000_000
_DATE_PARTS, _MOST_PARTS = 5, 7


@frozen
class TagFile:
    """Contents of a tag file.

    Attributes:
        snapshot: The snapshot that the tag names.
        create_time_millis: Creation time of the tag; milliseconds since 1970 of a wall clock
            without a zone, the ledger's being UTC. None where the tag is kept for ever.
        time_retained_millis: Retention in milliseconds; None for ever.
    """

    snapshot: Snapshot
    create_time_millis: int | None = None
    time_retained_millis: int | None = None


class _TagKeys(msgspec.Struct, kw_only=True, rename="camel"):
    tag_create_time: tuple[int, ...] | None = None
    tag_time_retained: Decimal | None = None


TAG_KEYS = frozenset(each.encode_name for each in msgspec.structs.fields(_TagKeys))
"""The keys that a tag file has besides the snapshot's."""


def tag_file(
    snapshot: Snapshot, *, create_time_millis: int | None, time_retained_millis: int | None
) -> bytes:
    """Return the bytes of a tag file, as Paimon's Java writes them.

    As in Paimon, the creation time is written only together with a retention.

    Args:
        snapshot: The snapshot that the tag names.
        create_time_millis: Milliseconds since 1970; None when there is no retention.
        time_retained_millis: None keeps the tag for ever.

    Raises:
        InvalidInputError: A retention without a creation time, from which it would count, or a
            time out of range.
    """
    content = snapshot_to_json(snapshot)
    if time_retained_millis is None:
        return paimon_json(content).encode()
    if create_time_millis is None or time_retained_millis < 0:
        raise InvalidInputError(
            f"a tag kept for {time_retained_millis} ms needs its creation time, and neither may "
            "be negative: give both"
        )
    content["tagCreateTime"] = _millis_to_date_parts(create_time_millis)
    seconds, rest = divmod(time_retained_millis, 1000)
    # Java prints all nine decimals, which a JSON float would lose.
    retained = f'"tagTimeRetained" : {seconds}.{rest:03d}000000'
    return f"{paimon_json(content)[:-2]},\n  {retained}\n}}".encode()


def tag_from_json(obj: Mapping[str, Any] | str | bytes) -> TagFile:
    """Read a tag file.

    Args:
        obj: The file's bytes or text, or its decoded JSON. Fractions of a millisecond are
            truncated.

    Raises:
        InvalidInputError: It is no tag file; the message names the place.
    """
    keys = decode_file(obj, _TagKeys, "tag file")
    return TagFile(
        snapshot=snapshot_from_json(obj),
        create_time_millis=None
        if keys.tag_create_time is None
        else _date_parts_to_millis(keys.tag_create_time),
        time_retained_millis=_retention_millis(keys.tag_time_retained),
    )


def _millis_to_date_parts(millis: int) -> list[int]:
    try:
        at = _EPOCH + millis * _MILLISECOND
    except OverflowError as error:
        raise InvalidInputError(
            f"{millis} ms since 1970 lies outside the years 1 to 9999: give milliseconds"
        ) from error
    parts = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond * 1000]
    # Jackson leaves out trailing zero parts, but never the minutes.
    while len(parts) > _DATE_PARTS and not parts[-1]:
        parts.pop()
    return parts


def _date_parts_to_millis(parts: tuple[int, ...]) -> int:
    try:
        return _parse_date_parts(parts)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"not a Paimon tag file: {list(parts[:_MOST_PARTS])} at $.tagCreateTime is no year, "
            f"month, day, hour, minute, second, nanosecond: {error}"
        ) from error


def _parse_date_parts(parts: tuple[int, ...]) -> int:
    if not _DATE_PARTS <= len(parts) <= _MOST_PARTS:
        raise ValueError(f"{len(parts)} parts")
    year, month, day, hour, minute, second, nanos = (*parts, 0, 0)[:_MOST_PARTS]
    if not 0 <= nanos < _NANOS_OF_MILLI * 1000:
        raise ValueError(f"{nanos} nanoseconds")
    whole = dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - as `_EPOCH`
    return (whole - _EPOCH) // _MILLISECOND + nanos // _NANOS_OF_MILLI


def _retention_millis(seconds: Decimal | None) -> int | None:
    if seconds is None:
        return None
    if not seconds.is_finite() or not 0 <= seconds < _MOST_SECONDS:
        raise InvalidInputError(
            f"not a Paimon tag file: {seconds} at $.tagTimeRetained is no number of seconds"
        )
    return int(seconds * 1000)


class _ConsumerFile(msgspec.Struct, rename="camel"):
    next_snapshot: int


def consumer_from_json(obj: Mapping[str, Any] | str | bytes) -> int:
    """Return the id of the snapshot that a consumer reads next; it and later ones must be kept.

    Raises:
        InvalidInputError: It is no consumer file; the message names the place.

    Example:
        >>> consumer_from_json('{"nextSnapshot": 42}')
        42
    """
    return decode_file(obj, _ConsumerFile, "consumer file").next_snapshot


def consumer_file(next_snapshot: int) -> bytes:
    """Return the bytes of a consumer file, as Paimon's Java writes them."""
    return paimon_json({"nextSnapshot": next_snapshot}).encode()
