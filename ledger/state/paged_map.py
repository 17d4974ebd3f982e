"""PagedMap: an immutable mapping in pages, for catalogs of many tables.

An entry's page is chosen by a hash of its key. A changed copy has new pages where entries changed
and shares all others with the original, so that a commit costs a page and not the whole catalog.
Pages are written to files named by their content, and read when one of their entries is asked for.
Changes do not read a page: they are kept beside its name, and applied once it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, Generic, Protocol, TypeVar
from zlib import crc32

import msgspec
from attrs import frozen
from msgspec import Raw, Struct

from ledger.model.errors import DamagedLogError, InvalidChangeError
from ledger.model.messages import excerpt

K = TypeVar("K")
V = TypeVar("V")

PAGE_LENGTH: Final = 64
"""Number of entries in a page, about, when pages are full; then their number doubles."""

_NAME_LENGTH: Final = 32
_HEX: Final = re.compile("[0-9a-f]*")

_ENTRIES = msgspec.json.Decoder(dict[str, Raw])
_ENCODER = msgspec.json.Encoder(order="deterministic")


class PagesRecord(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """A mapping in a checkpoint.

    Attributes:
        entries: The entries of a mapping of one page.
        pages: The names of the page files of a mapping of several pages.
    """

    entries: dict[str, Raw] = {}
    pages: tuple[str, ...] = ()


def page_count(entries: int) -> int:
    """Return the number of pages, a power of two, for a number of entries.

    Example:
        >>> page_count(0), page_count(64), page_count(65), page_count(100_000)
        (1, 1, 2, 2048)
    """
    return 1 << max(0, (entries - 1) // PAGE_LENGTH).bit_length()


def page_name(body: bytes) -> str:
    """Return the name of a page's file: the first 128 bits of the SHA-256 of its bytes."""
    return sha256(body).hexdigest()[:_NAME_LENGTH]


_EMPTY_PAGE: Final = page_name(b"{}")


@frozen
class EntryFormat(Generic[K, V]):
    """Written form and order of the entries of one mapping.

    Attributes:
        text_of: Returns a key as text, different for different keys.
        key_of: Returns the key of a text.
        record_of: Returns the record of a value, which JSON can hold.
        value_of: Returns the value of a record's JSON.
        order: Returns the sort key of an entry; the value is read only if it calls the function.
        combine: Returns the value of a key, given as text, that has a value and is added again;
            raises InvalidChangeError if it may not be.
    """

    text_of: Callable[[K], str]
    key_of: Callable[[str], K]
    record_of: Callable[[V], Any]
    value_of: Callable[[Raw], V]
    order: Callable[[K, Callable[[], V]], Any]
    combine: Callable[[str, V, V], V]


class PageFiles(Protocol):
    """Page files of one checkpoint."""

    def read(self, names: Sequence[str]) -> Sequence[bytes | None]:
        """Return the bytes of pages; None for one whose file is missing, torn or changed."""

    def replayed(self) -> Any:
        """Return the state of the checkpoint's version, folded from the log."""


@frozen
class _StoredPages(Generic[K, V]):
    """Source of the entries of pages that are not read yet."""

    files: PageFiles
    in_state: Callable[[Any], PagedMap[K, V]]

    def load(self, pages: Mapping[int, _Page[V]]) -> None:
        """Read the entries of pages; of one whose file is missing from a replay of the log."""
        bodies = self.files.read([each.name for each in pages.values()])
        for (number, page), body in zip(pages.items(), bodies, strict=True):
            page.entries = self._entries(number, body)

    def _entries(self, number: int, body: bytes | None) -> dict[str, V | Raw]:
        # A page whose bytes have their name and are no entries was forged.
        with suppress(msgspec.DecodeError, RecursionError):
            if body is not None:
                return {**_ENTRIES.decode(body)}
        return self.in_state(self.files.replayed()).entries_of_page(number)


def forged_entry_error(text: str) -> DamagedLogError:
    """Return the error for an entry of a checkpoint that no version of this library wrote."""
    return DamagedLogError(
        f"the checkpoint holds no valid entry for {excerpt(text)}: delete the folder caches of the "
        "catalog; it is rebuilt",
        "caches",
    )


class _Page(Generic[V]):
    """Entries of one page by the texts of their keys; each is decoded when it is asked for.

    Attributes:
        name: The name of its file; empty until its bytes are made.
        entries: The entries; None until the page is read.
        base: The page that is to be read and changed; None for a page without changes.
        changes: The values to set then; None for entries to remove.
        added: The changed entries that should not exist before.
        is_stored: True if its file is written.
    """

    __slots__ = ("added", "base", "changes", "entries", "is_stored", "name")

    def __init__(self, name: str, entries: dict[str, V | Raw] | None) -> None:
        self.name = name
        self.entries = entries
        self.base: _Page[V] | None = None
        self.changes: dict[str, V | None] = {}
        self.added: frozenset[str] = frozenset()
        self.is_stored = bool(name)

    def changed(self, changes: dict[str, V | None], added: frozenset[str]) -> _Page[V]:
        """Return a copy of a page that is not read yet, with changes to make once it is."""
        page = _Page[V]("", None)
        page.base = self.base or self
        page.changes = self.changes | changes
        # An entry that was removed before may be added.
        anew = added - self.changes.keys()
        page.added = anew.union(
            each for each in self.added if each not in changes or changes[each] is not None
        )
        return page


class PagedMap(Mapping[K, V]):
    """Immutable mapping whose changed copies share unchanged pages.

    Iteration is in the order of the format. Safe to share between threads.

    Example:
        >>> texts = EntryFormat(str, str, str, str, lambda key, _: key, lambda key, old, new: new)
        >>> one = PagedMap.of(texts, {"b": "2", "a": "1"})
        >>> [*one.changed({"a": None, "c": "3"}, pages=2).items()], [*one]
        ([('b', '2'), ('c', '3')], ['a', 'b'])
    """

    __slots__ = ("_format", "_pages", "_stored")

    def __init__(
        self,
        form: EntryFormat[K, V],
        pages: list[_Page[V] | str],
        stored: _StoredPages[K, V] | None = None,
    ) -> None:
        self._format = form
        # A page that was never asked for is only the name of its file.
        self._pages = pages
        self._stored = stored

    @classmethod
    def of(
        cls, form: EntryFormat[K, V], entries: Mapping[K, V] | None = None, *, pages: int = 1
    ) -> PagedMap[K, V]:
        """Return the mapping of some entries, in a number of pages that is a power of two."""
        empty: list[_Page[V] | str] = [_Page("", {}) for _ in range(pages)]
        return cls(form, empty).changed(entries or {}, pages=pages)

    @property
    def pages(self) -> int:
        """The number of pages."""
        return len(self._pages)

    def changed(
        self, changes: Mapping[K, V | None], *, pages: int, added: Collection[K] = ()
    ) -> PagedMap[K, V]:
        """Return a copy with some entries set, and those that are None removed.

        Args:
            changes: The entries.
            pages: The number of pages of the copy, a power of two.
            added: The keys of those that should not exist before.

        Raises:
            InvalidChangeError: One of these exists, and its values are not combined. Of a page
                that is not read yet, a DamagedLogError is raised when it is read.
        """
        if pages != len(self._pages):
            return self._redistributed(pages).changed(changes, pages=pages, added=added)
        if not changes:
            return self
        by_page: dict[int, dict[str, V | None]] = {}
        for key, value in changes.items():
            text = self._format.text_of(key)
            by_page.setdefault(_hash(text) & (pages - 1), {})[text] = value
        added_texts = frozenset(map(self._format.text_of, added))
        copies = [*self._pages]
        for number, texts in by_page.items():
            copies[number] = self._changed_page(number, texts, added_texts & texts.keys())
        return PagedMap(self._format, copies, self._stored)

    def _changed_page(
        self, number: int, changes: dict[str, V | None], added: frozenset[str]
    ) -> _Page[V]:
        page = self._page(number)
        if page.entries is None:
            return page.changed(changes, added)
        entries = {**page.entries}
        self._apply(entries, changes, added)
        return _Page("", entries)

    def _page(self, number: int) -> _Page[V]:
        page = self._pages[number]
        if isinstance(page, str):
            page = self._pages[number] = _Page(page, None)
        return page

    def _apply(
        self, entries: dict[str, V | Raw], changes: dict[str, V | None], added: frozenset[str]
    ) -> None:
        for text, value in changes.items():
            if value is None:
                entries.pop(text, None)
            elif text in added and text in entries:
                there = self._decoded(entries, text)
                entries[text] = self._format.combine(text, there, value)
            else:
                entries[text] = value

    def _redistributed(self, pages: int) -> PagedMap[K, V]:
        parts: list[dict[str, V | Raw]] = [{} for _ in range(pages)]
        for entries in self._all_entries():
            for text, value in entries.items():
                parts[_hash(text) & (pages - 1)][text] = value
        return PagedMap(self._format, [_Page("", each) for each in parts])

    def entries_of_page(self, number: int) -> dict[str, V | Raw]:
        """Return a copy of the entries of a page, by the texts of their keys."""
        return {**self._entries(number)}

    def _entries(self, number: int) -> dict[str, V | Raw]:
        """Return the entries of a page, after reading it."""
        page = self._page(number)
        if page.entries is None:
            entries = {**self._read([number])[number]}
            if page.base is not None:
                self._apply_later(entries, page)
            page.entries = entries
        return page.entries

    def _read(self, numbers: Sequence[int]) -> dict[int, dict[str, V | Raw]]:
        """Return the stored entries of pages, which are read together."""
        pages = {number: self._page(number) for number in numbers}
        bases = {number: page.base or page for number, page in pages.items()}
        unread = {number: page for number, page in bases.items() if page.entries is None}
        if unread:
            assert self._stored is not None  # noqa: S101 - a page without entries has a file
            self._stored.load(unread)
        return {number: page.entries or {} for number, page in bases.items()}

    def _all_entries(self) -> Iterator[dict[str, V | Raw]]:
        numbers = range(len(self._pages))
        self._read(numbers)
        return map(self._entries, numbers)

    def _apply_later(self, entries: dict[str, V | Raw], page: _Page[V]) -> None:
        """Apply the changes of commits that were folded before their page was read.

        Raises:
            DamagedLogError: They contradict the commits before them.
        """
        try:
            self._apply(entries, page.changes, page.added)
        except InvalidChangeError as error:
            raise DamagedLogError(
                f"a commit of the catalog contradicts those before it: {error}; find it by "
                "lakeledger verify",
                page.base.name if page.base is not None else "",
            ) from error

    def known(self, key: K) -> bool:
        """Return whether it is known without reading a page if an entry exists."""
        text = self._format.text_of(key)
        page = self._pages[_hash(text) & (len(self._pages) - 1)]
        return not isinstance(page, str) and (page.entries is not None or text in page.changes)

    def _changes_to_come(self, number: int) -> Mapping[str, V | None]:
        """Return the changes of a page that is not read yet; none of one that is."""
        page = self._pages[number]
        return {} if isinstance(page, str) or page.entries is not None else page.changes

    def __getitem__(self, key: K) -> V:
        text = self._format.text_of(key)
        number = _hash(text) & (len(self._pages) - 1)
        changes = self._changes_to_come(number)
        if text in changes:
            changed = changes[text]
            if changed is None:
                raise KeyError(key)
            return changed
        return self._decoded(self._entries(number), text)

    def _decoded(self, entries: dict[str, V | Raw], text: str) -> V:
        found = entries[text]
        if isinstance(found, Raw):
            try:
                found = entries[text] = self._format.value_of(found)
            except (msgspec.DecodeError, RecursionError) as error:
                raise forged_entry_error(text) from error
        return found

    def __contains__(self, key: object) -> bool:
        text = self._format.text_of(key)  # type: ignore[arg-type]
        number = _hash(text) & (len(self._pages) - 1)
        changes = self._changes_to_come(number)
        if text in changes:
            return changes[text] is not None
        return text in self._entries(number)

    def __iter__(self) -> Iterator[K]:
        form = self._format
        found = []
        for entries in self._all_entries():
            for text in [*entries]:
                key = form.key_of(text)
                found.append((form.order(key, partial(self._decoded, entries, text)), key))
        found.sort(key=itemgetter(0))
        return iter([key for _, key in found])

    def __len__(self) -> int:
        return sum(map(len, self._all_entries()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"

    def record(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the mapping's record in a checkpoint, and the pages to write before it, by name.

        A mapping of one page is in the record itself.
        """
        if len(self._pages) == 1:
            return {"entries": Raw(self._body(0))}, {}
        names: list[str] = []
        bodies: dict[str, bytes] = {}
        for number, page in enumerate(self._pages):
            if isinstance(page, str) or page.is_stored:
                names.append(page if isinstance(page, str) else page.name)
                continue
            body = self._body(number)
            names.append(page_name(body))
            bodies[names[-1]] = body
        return {"pages": names}, bodies

    def mark_stored(self, names: Sequence[str]) -> None:
        """Record the names of all pages, once their files are written."""
        for page, name in zip(self._pages, names, strict=True):
            if not isinstance(page, str) and page.entries is not None:
                page.name, page.is_stored = name, True

    @classmethod
    def of_record(
        cls,
        form: EntryFormat[K, V],
        record: PagesRecord,
        files: PageFiles,
        in_state: Callable[[Any], PagedMap[K, V]],
    ) -> PagedMap[K, V]:
        """Return the mapping of a record; pages are read when one of their entries is asked for.

        Args:
            form: The format of the entries.
            record: The record.
            files: The checkpoint's pages; a missing page is taken from a replay of the log.
            in_state: Returns the same mapping of a state.

        Raises:
            msgspec.ValidationError: The number of pages is no power of two, or a name is no name.
        """
        if not record.pages:
            return cls(form, [_Page("", {**record.entries})])
        count = len(record.pages)
        if count & (count - 1):
            raise msgspec.ValidationError(f"{count} pages are no power of two")
        are_short = all(len(each) == _NAME_LENGTH for each in record.pages)
        if not are_short or _HEX.fullmatch("".join(record.pages)) is None:
            raise msgspec.ValidationError("a page has another name than a hash")
        # An empty page is not read, to know that it has no entry.
        pages: list[_Page[V] | str] = [
            _Page(each, {}) if each == _EMPTY_PAGE else each for each in record.pages
        ]
        return cls(form, pages, _StoredPages(files, in_state))

    def _body(self, number: int) -> bytes:
        record_of = self._format.record_of
        records = {
            text: value if isinstance(value, Raw) else record_of(value)
            for text, value in self._entries(number).items()
        }
        return _ENCODER.encode(records)


class PagedMapDraft(Generic[K, V]):
    """Mutable form of a mapping while commits are folded; it keeps what differs from the base."""

    def __init__(self, form: EntryFormat[K, V], base: Mapping[K, V]) -> None:
        self._format = form
        self._base = base if isinstance(base, PagedMap) else PagedMap.of(form, base)
        self._changes: dict[K, V | None] = {}
        self._added: set[K] = set()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._changes[key] if key in self._changes else self._base.get(key)

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def add(self, key: K, value: V) -> None:
        """Add an entry that should not exist; its page is not read for that.

        Raises:
            InvalidChangeError: It exists, and values of the format are not combined.
        """
        if key in self._changes or self._base.known(key):
            there = self.get(key)
            if there is not None:
                value = self._format.combine(self._format.text_of(key), there, value)
        else:
            self._added.add(key)
        self._changes[key] = value

    def put(self, key: K, value: V) -> None:
        """Set the value of an entry, which may exist."""
        self._changes[key] = value

    def discard(self, key: K) -> None:
        """Remove an entry if it exists."""
        self._added.discard(key)
        if key in self._changes or not self._base.known(key) or key in self._base:
            self._changes[key] = None

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all entries as they are now."""
        yield from [*self.frozen(self._base.pages).items()]

    def frozen(self, pages: int) -> PagedMap[K, V]:
        """Return the mapping as it is now, in a number of pages; later changes do not affect it."""
        self._base = self._base.changed(self._changes, pages=pages, added=self._added)
        self._changes, self._added = {}, set()
        return self._base


def _hash(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))
