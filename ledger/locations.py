"""Locations: canonical forms and containment of paths and URLs. Pure.

A place on this machine is a path: `/lake/a`, `file:///lake/a` and `file:/lake/a` are one, and
empty, `.` and `..` segments mean what they mean to a file system, but for symbolic links. A place
in a bucket is a scheme's family, a bucket and a key; keys are bytes, so that `a//b` and `a/b` are
two. Nothing here does I/O: a link is resolved once, where a file is added.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from typing import Final
from unicodedata import normalize

from attrs import field, frozen
from msgspec import Struct

from ledger.model.credentials import carries_credentials, credentials_error_text
from ledger.model.errors import InvalidChangeError, InvalidInputError

LOCAL: Final = "file"
"""The family of local file system paths."""

FAMILIES: Final = {
    "s3": ("s3", "s3a", "s3n"),
    "gs": ("gs", "gcs"),
    "abfs": ("abfss", "abfs", "az", "wasbs", "wasb"),
}
"""URL schemes of one kind of object store, the usual one of data files first."""

_FAMILY_OF: Final = {scheme: family for family, all_ in FAMILIES.items() for scheme in all_}
_is_url = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/]*)(?:/(.*))?", re.DOTALL).fullmatch
_is_file_url = re.compile(
    r"[Ff][Ii][Ll][Ee]:(?://(?:[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])?)?(/.*)", re.DOTALL
).fullmatch
_CHAIN: Final = "::"
_ODD: Final = frozenset(("", ".", ".."))
_AZURE_HOST: Final = re.compile(r"([^@]+)@([^.@]+)\.(?:dfs|blob)\.(.+)", re.IGNORECASE).fullmatch
_came_later = re.compile(r"(?i:wasbs?)://|(?i:abfss?|az)://[^/@]*@[^/]*[A-Z]").match


class Place(Struct, frozen=True):
    """Canonical location of a path or URL.

    Attributes:
        family: `file`, a family of buckets, another URL's scheme in lower case, or empty for a
            chain of file systems, which `path` holds as a whole.
        host: The bucket, with the account where one is named; empty on this machine.
        path: The path or key, without a slash at its beginning.

    Example:
        >>> place_of("s3a://lake/t/a") == place_of("s3://lake/t/a")
        True
    """

    family: str
    host: str
    path: str

    @property
    def service(self) -> tuple[str, str]:
        """Store that serves this location: its family and host.

        Example:
            >>> place_of("s3://lake/t").service
            ('s3', 'lake')
        """
        return self.family, self.host

    def below(self, path: str) -> Place:
        """Return what a relative path means here.

        Example:
            >>> place_of("/lake/t").below("../a").path
            'lake/a'
        """
        return place_of(path, self)

    def holds(self, other: Place) -> bool:
        """Return whether another place is this one or below it.

        Example:
            >>> lake = place_of("s3://lake/t")
            >>> lake.holds(place_of("s3a://lake/t/a")), lake.holds(place_of("s3://lake/t2"))
            (True, False)
        """
        if self.service != other.service:
            return False
        inside = self.path.rstrip("/")
        return not inside or other.path == inside or other.path.startswith(f"{inside}/")

    def meets(self, other: Place) -> bool:
        """Return whether one of two places holds the other, compared by `folded` names.

        Example:
            >>> place_of("/lake/T/a").meets(place_of("/lake/t"))
            True
        """
        one, two = self.with_folded_names(), other.with_folded_names()
        return one.holds(two) or two.holds(one)

    def with_folded_names(self) -> Place:
        """Return a key that is equal for places which some stores treat as one.

        Example:
            >>> place_of("/lake/T").with_folded_names().path
            'lake/t'
        """
        return Place(self.family, folded(self.host), folded(self.path))


def folded(text: str) -> str:
    """Return a name's key under which some stores treat names as equal.

    These ignore case, or whether an accent is a separate code point.

    Example:
        >>> folded("CAFE" + chr(0x301)) == folded("caf" + chr(0xE9))
        True
    """
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def find_colliding_names(name: str, others: Collection[str]) -> list[str]:
    """Return those of some names, without line ends, that some stores treat as one name.

    Example:
        >>> find_colliding_names("v1", ["V1", "v2"]), find_colliding_names("v3", ["V1", "v2"])
        (['V1'], [])
    """
    wanted, whole = folded(name), "\n".join(others)
    # There may be thousands of names, and mostly none collides.
    if whole.isascii() and f"\n{wanted}\n" not in f"\n{whole.lower()}\n":
        return []
    return [each for each in others if folded(each) == wanted]


def is_absolute(text: str) -> bool:
    """Return whether a text is an absolute path or a URL.

    Example:
        >>> is_absolute("data/a"), is_absolute("/lake/a"), is_absolute("file:/lake/a")
        (False, True, True)
    """
    return text.startswith("/") or is_url(text) or _is_file_url(text) is not None


def is_url(text: str) -> bool:
    """Return whether a text has a URL scheme and, where the scheme has one, a host.

    Example:
        >>> is_url("file:///lake/a"), is_url("/lake/a"), is_url("file:/lake/a")
        (True, False, False)
    """
    return "://" in text


def may_escape_folder(text: str) -> bool:
    """Return whether some reader may resolve a path outside its folder; also if it is no path.

    Validators reject such a path, and `verify` reports those in a log.

    Example:
        >>> [may_escape_folder(each) for each in ("a/b", "a/../../b", "s3://b/../c", "/x", "")]
        [False, True, True, False, True]
    """
    up = ".." in text and ".." in text.replace("\\", "/").split("/")
    return up or not text or "\0" in text


def local_path(text: str) -> str | None:
    """Return the absolute path of a local place, with its segments unchanged.

    None for other storage and for a relative text.

    Example:
        >>> local_path("FILE:///lake/../a"), local_path("/lake/a"), local_path("s3://lake/a")
        ('/lake/../a', '/lake/a', None)
    """
    found = _is_file_url(text)
    path = found[1] if found else text
    return "/" + path.lstrip("/") if path.startswith("/") else None


def below(location: str, path: str) -> str:
    """Return the location of a file that a table names; absolute paths are unchanged.

    Example:
        >>> below("s3://lake/t", "d/a"), below("s3://lake/t", "file:/lake/a")
        ('s3://lake/t/d/a', 'file:/lake/a')
    """
    return path if is_absolute(path) else f"{location}/{path}"


def with_scheme(place: str) -> str:
    """Return an absolute place as a URL; a local path gains the scheme `file`.

    Example:
        >>> with_scheme("/lake/t"), with_scheme("s3://lake/t")
        ('file:///lake/t', 's3://lake/t')
    """
    return f"file://{place}" if place.startswith("/") else place


def family_of(text: str) -> str:
    """Return the kind of storage of a place: `Place.family`; a relative path is local.

    Example:
        >>> family_of("d/a"), family_of("file:/lake/a"), family_of("s3a://lake/a")
        ('file', 'file', 's3')
    """
    return place_of(text, _ROOT).family


def place_of(text: str, base: Place | None = None) -> Place:
    """Return the place of a path or URL.

    Args:
        text: A path or URL, taken literally: nothing in it is percent-decoded.
        base: What a relative path is relative to.

    Raises:
        InvalidInputError: It is relative, and `base` is None.

    Example:
        >>> place_of("file:///lake//t/../t/a").path
        'lake/t/a'
    """
    path = local_path(text)
    if path is not None:
        return Place(LOCAL, "", _normalize_path(path))
    url = _is_url(text)
    if url is not None:
        return _bucket_place(url[1].lower(), url[2], url[3] or "", base)
    if is_url(text):
        return Place("", "", text)
    if base is None:
        raise InvalidInputError(f"{text!r} is relative; write /PATH or SCHEME://PATH")
    joined = f"{base.path.rstrip('/')}/{text}" if base.path else text
    return Place(
        base.family, base.host, _normalize_path(joined) if base.family == LOCAL else joined
    )


_ROOT: Final = Place(LOCAL, "", "")


@frozen
class FileNames:
    """Equivalent paths and URLs of the files of one table.

    Attributes:
        location: The table's absolute URL.

    Example:
        >>> FileNames("file:///lake/t").spellings("/lake/t/a")
        ('a', 'file:///lake/t/a', '/lake/t/a', 'file:/lake/t/a')
        >>> FileNames("s3://lake/t").spellings("s3a://lake/a")
        ('s3://lake/a', 's3a://lake/a', 's3n://lake/a')
    """

    location: str
    _base: Place = field(init=False, repr=False, eq=False)
    _folders: tuple[str, ...] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        """Derive the prefixes of all file names."""
        base = place_of(self.location)
        path = f"{base.path.rstrip('/')}/" if base.path else ""
        folder = Place(base.family, base.host, path)
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "_folders", _equivalent_urls(folder, base))

    def spellings(self, path: str) -> tuple[str, ...]:
        """Return every text that names a file, the usual one first.

        Below the location that is the relative path, and elsewhere the URL.

        Example:
            >>> FileNames("s3://lake/t").spellings("a")
            ('a', 's3://lake/t/a', 's3a://lake/t/a', 's3n://lake/t/a')
        """
        if not is_absolute(path) and _has_plain_segments(path):
            return path, *(each + path for each in self._folders)
        place = place_of(path, self._base)
        if place.service == self._base.service:
            relative = _path_below(place.path, self._base.path)
            # A key that starts with a slash would be read as an absolute path.
            if relative and not relative.startswith("/"):
                return relative, *(each + relative for each in self._folders)
        return _equivalent_urls(place, self._base)

    def by_spelling(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the files of some paths by every text that names them; see `spellings`.

        Example:
            >>> [*FileNames("file:///lake/t").by_spelling(["a"])]
            ['a', 'file:///lake/t/a', '/lake/t/a', 'file:/lake/t/a']
        """
        if not self.are_canonical(paths):
            return {name: path for path in paths for name in self.spellings(path)}
        return {folder + path: path for folder in ("", *self._folders) for path in paths}

    def usual(self, path: str) -> str:
        """Return the canonical name of a file; one text per file.

        Example:
            >>> FileNames("file:///lake/t").usual("/lake/t/a")
            'a'
        """
        return path if _is_surely_canonical(path) else self.spellings(path)[0]

    def canonical_in_log(self, path: str) -> str:
        """Return the canonical name of a file in a log, by the rules of the log's writer.

        Older clients treated some Azure spellings as different files; their entries are valid.

        Example:
            >>> FileNames("s3://lake/t").canonical_in_log("wasb://c@x.blob.core.windows.net/a")
            'wasb://c@x.blob.core.windows.net/a'
        """
        return path if _came_later(path) else self.usual(path)

    def are_canonical(self, paths: Sequence[str]) -> bool:
        """Return whether all paths are clearly canonical, by a fast check.

        False means unknown: check each path.

        Example:
            >>> names = FileNames("file:///lake/t")
            >>> names.are_canonical(["a", "b/c"]), names.are_canonical(["a", "file:///lake/t/b"])
            (True, False)
        """
        return _is_surely_canonical("/".join(paths))

    def check_all(self, paths: Sequence[str]) -> None:
        """Reject paths that different readers resolve to different files; see `check`.

        Raises:
            InvalidChangeError: As `check`, of the first such path.

        Example:
            >>> FileNames("s3://lake/t").check_all(["a", "s3://lake/b"])
        """
        if not (self._base.family and self.are_canonical(paths)):
            for each in paths:
                self.check(each)

    def check(self, path: str) -> None:
        """Reject a path that different readers resolve to different files.

        Raises:
            InvalidChangeError: Its spelling is not canonical, it has a `.` or `..` segment in a
                bucket's key, it is a chain of file systems or an incomplete URL, or it carries
                credentials.

        Example:
            >>> FileNames("s3://lake/t").check("zip:://s3://lake/a")
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: file path 'zip:://s3://lake/a' is a chain of \
file systems; name the file itself
        """
        if carries_credentials(path):
            raise InvalidChangeError(f"file path {credentials_error_text(path)}")
        if _is_surely_canonical(path) and self._base.family:
            return
        if _CHAIN in path and is_url(path):
            raise InvalidChangeError(
                f"file path {path!r} is a chain of file systems; name the file itself"
            )
        if not place_of(path, self._base).family:
            raise InvalidChangeError(
                f"file path {path!r} is neither a URL nor below the table's location; write "
                "SCHEME://PATH or /PATH"
            )
        known = self.spellings(path)
        if path in known and {".", ".."}.isdisjoint(path.split("/")):
            return
        instead = f"write {known[0]!r}" if path not in known else "give the file another key"
        raise InvalidChangeError(
            f"file path {path!r} is not a canonical spelling: some readers open another file; "
            f"{instead}"
        )


def _path_below(path: str, folder: str) -> str:
    start = f"{folder.rstrip('/')}/" if folder else ""
    return path[len(start) :] if path.startswith(start) else ""


def _has_plain_segments(path: str) -> bool:
    """Return whether no segment of a relative path is empty, `.` or `..`."""
    return _ODD.isdisjoint(path.split("/"))


def is_plain_relative(path: str) -> bool:
    """Return whether a path is clearly below its folder and no URL; False means unknown.

    Example:
        >>> [*map(is_plain_relative, ("a/b", "a//b", "a/../b", "s3://a", "/a", ""))]
        [True, False, False, False, False, False]
    """
    return _is_surely_canonical(path) and "\\" not in path and "\0" not in path


def _is_surely_canonical(path: str) -> bool:
    """Return whether a path is clearly canonical, by a fast check; False means unknown."""
    # An absolute path has a colon, or begins with an empty segment.
    return ":" not in path and _has_plain_segments(path)


def _equivalent_urls(place: Place, base: Place) -> tuple[str, ...]:
    if place.family == LOCAL:
        return f"file:///{place.path}", f"/{place.path}", f"file:/{place.path}"
    if not place.family:
        return (place.path,)
    hosts = [place.host]
    azure = _AZURE_HOST(place.host) if place.family == "abfs" else None
    if azure is not None:
        container, account, domain = azure.groups()
        hosts = [f"{container}@{account}.{kind}.{domain}" for kind in ("dfs", "blob")]
        if base.service == place.service:
            hosts.append(container)
    schemes = FAMILIES.get(place.family, (place.family,))
    return tuple(f"{each}://{host}/{place.path}" for host in hosts for each in schemes)


def _bucket_place(scheme: str, host: str, key: str, base: Place | None) -> Place:
    family = _FAMILY_OF.get(scheme, scheme)
    azure = _AZURE_HOST(host) if family == "abfs" else None
    if azure is not None:
        # A host is case-insensitive; a container's name is part of the key.
        host = f"{azure[1]}@{azure[2].lower()}.dfs.{azure[3].lower()}"
    elif family == "abfs" and base is not None and base.host.startswith(f"{host}@"):
        # The account is the one in the table's own location.
        host = base.host
    return Place(family, host, key)


def _normalize_path(path: str) -> str:
    return posixpath.normpath("/" + path).strip("/") if path.strip("/") else ""
