"""Lookup of files by path in long lists of file changes, without decoding whole lists.

A long list is in the order of paths, in row groups of some thousand rows, and the statistics of a
row group have its first and last path. The first lookup in a row group decodes its paths and keeps
their hashes; a file's change is decoded with its row group. In a list that is in another order, as
those of earlier releases, more row groups may have a path, and are looked up in the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final
from weakref import WeakValueDictionary

from attrs import evolve

from ledger.events.snapshots import ChangesReference
from ledger.files.change_lists import (
    changes_from_table,
    column_texts,
    invalid_changes_error,
    load_change_file,
    open_changes,
    rows_of_files,
)
from ledger.log.layout import Layout
from ledger.model.file_change import FileChange
from ledger.stores import Store

_PATH: Final = "path"

_MOST_KEPT_BYTES: Final = 1 << 24
"""Maximum size of the lists that are kept for the next lookup, in bytes; the last one always is."""


class LongList:
    """One list of file changes, in memory.

    Every change of it is one atomic, idempotent step, so that no thread needs a lock.

    Args:
        body: The list's Parquet file.
        count: The number of file changes that its commit names.
        key: The list's key on the store, for errors.

    Raises:
        DamagedLogError: It is no list of so many file changes.
        UpgradeRequiredError: A newer version wrote it.
    """

    def __init__(self, body: bytes, count: int, key: str) -> None:
        self._key = key
        self._hashes: dict[int, frozenset[int]] = {}
        with self._refusing_damage():
            self._paths = open_changes(body, count, [_PATH])
            self._whole = evolve(self._paths, columns=None)
            self._firsts, self._lasts = _path_ranges(self._paths.arrow.metadata)

    @property
    def size(self) -> int:
        """The size of its file in bytes."""
        return len(self._whole.body)

    def may_name(self, path: str) -> bool:
        """Return whether a change of a file is in the list, apart from colliding hashes."""
        return any(hash(path) in self._hashes_in(each) for each in self._row_groups_at(path))

    def paths(self) -> Iterator[str]:
        """Yield the paths of the files, in the list's order.

        Raises:
            DamagedLogError: The list cannot be decoded.
        """
        for number in range(len(self._firsts)):
            yield from self._decode_paths(number)

    def changes_of(self, paths: Collection[str]) -> tuple[FileChange, ...]:
        """Return the changes of the given files, in the list's order.

        Raises:
            DamagedLogError: The list cannot be decoded.
        """
        numbers = sorted({number for path in paths for number in self._row_groups_of(path)})
        if not numbers:
            return ()
        with self._refusing_damage():
            rows = self._whole.row_groups(numbers)
            return tuple(changes_from_table(rows_of_files(rows, paths)))

    def _row_groups_of(self, path: str) -> Sequence[int]:
        """Return the row groups to decode for the changes of a file."""
        numbers = self._row_groups_at(path)
        if len(numbers) <= 1:
            # The caller mostly knows that the list has the file.
            return numbers
        return [each for each in numbers if hash(path) in self._hashes_in(each)]

    def _row_groups_at(self, path: str) -> range:
        # Those before end with earlier paths, and those after begin with later ones.
        return range(bisect_left(self._lasts, path), bisect_right(self._firsts, path))

    def _hashes_in(self, number: int) -> frozenset[int]:
        found = self._hashes.get(number)
        if found is None:
            found = self._hashes[number] = frozenset(map(hash, self._decode_paths(number)))
        return found

    def _decode_paths(self, number: int) -> list[str]:
        with self._refusing_damage():
            return column_texts(self._paths.row_groups([number]), _PATH)

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (ValueError, KeyError, OSError, pa.ArrowException) as error:
            raise invalid_changes_error(self._key, error) from error


def _path_ranges(metadata: Any) -> tuple[Sequence[str], Sequence[str]]:
    """Return the first path in each row group or a later one, and the last in it or an earlier one.

    Both ascend, also if the list is not in the order of paths. If the file does not say, all row
    groups may begin with any path, and there are no last ones.
    """
    groups = range(metadata.num_row_groups)
    names = [metadata.schema.column(each).path for each in range(metadata.num_columns)]
    found = [metadata.row_group(each).column(names.index(_PATH)).statistics for each in groups]
    if not all(each is not None and each.has_min_max for each in found):
        return [""] * len(groups), []
    firsts = [*accumulate((each.min for each in reversed(found)), min)]
    return firsts[::-1], [*accumulate((each.max for each in found), max)]


class LongLists:
    """The long lists of a table's commits; those used last are kept in memory.

    Args:
        store: The store of the log.
        layout: The keys of the stream's files.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._kept: dict[ChangesReference, LongList] = {}
        # The index of the newest commits holds lists, too.
        self._held: WeakValueDictionary[ChangesReference, LongList] = WeakValueDictionary()

    def opened(self, reference: ChangesReference) -> LongList:
        """Return the list that a commit names; it is read unless it is in memory.

        Raises:
            DamagedLogError: The file is missing, or its content is not what the commit names.
            UpgradeRequiredError: A newer version wrote it.
        """
        found = self._held.get(reference)
        if found is None:
            return self.keep(reference, load_change_file(self._store, self._layout, reference))
        self._keep_last(reference, found)
        return found

    def keep(self, reference: ChangesReference, body: bytes) -> LongList:
        """Keep a list in memory that was written or read; raises as `opened`."""
        key = f"{self._layout.root}/{reference.path}"
        found = self._held[reference] = LongList(body, reference.count, key)
        self._keep_last(reference, found)
        return found

    def _keep_last(self, reference: ChangesReference, found: LongList) -> None:
        kept = self._kept
        kept.pop(reference, None)
        kept[reference] = found
        sizes = [(each, one.size) for each, one in list(kept.items())]
        left = sum(size for _, size in sizes)
        for each, size in sizes[:-1]:
            if left > _MOST_KEPT_BYTES:
                kept.pop(each, None)
                left -= size


class ListedKeys:
    """Keys in the key index of the files in a long list.

    Args:
        beginning: The beginning of each key, before the path.
        files: The list.
    """

    def __init__(self, beginning: str, files: LongList) -> None:
        self._beginning = beginning
        self._files = files

    def may_hold(self, key: str) -> bool:
        """Return whether `key` is one of them, apart from colliding hashes."""
        start = self._beginning
        return key.startswith(start) and self._files.may_name(key[len(start) :])

    def __iter__(self) -> Iterator[str]:
        start = self._beginning
        return (start + each for each in self._files.paths())
