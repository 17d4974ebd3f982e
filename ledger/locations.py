"""Locations: canonical forms and containment of paths and URLs. Pure.

A place on this machine is a path: `/lake/a`, `file:///lake/a` and `file:/lake/a` are one, and
empty, `.` and `..` segments mean what they mean to a file system, but for symbolic links. A place
in a bucket is a scheme's family, a bucket and a key; keys are bytes, so that `a//b` and `a/b` are
two. Nothing here asks anybody: a link is resolved where a file is added, once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from typing import Final
from unicodedata import normalize

from attrs import field, frozen
from msgspec import Struct

from ledger.model.credentials import advice, carries_credentials
from ledger.model.errors import InvalidChangeError, InvalidInputError

LOCAL: Final = "file"
"""The family of places on this machine."""

FAMILIES: Final = {
    "s3": ("s3", "s3a", "s3n"),
    "gs": ("gs", "gcs"),
    "abfs": ("abfss", "abfs", "az", "wasbs", "wasb"),
}
"""The schemes by which one kind of bucket is called, the usual one of data files first."""

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
    """Where something is, whatever it is called.

    Attributes:
        family: `file`, a family of buckets, another URL's scheme in lower case, or nothing for a
            chain of file systems, which `path` is the whole of.
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
        """What has to be asked for it: another host of one family is another place to ask.

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
        """Whether another place is this one or lies in it.

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
        """Whether one of two places holds the other, told as `folded` does.

        Example:
            >>> place_of("/lake/T/a").meets(place_of("/lake/t"))
            True
        """
        one, two = self._folded(), other._folded()
        return one.holds(two) or two.holds(one)

    def _folded(self) -> Place:
        return Place(self.family, folded(self.host), folded(self.path))


def folded(text: str) -> str:
    """Return what names have in common that some stores take for one.

    These tell no case apart, or not whether a letter's accent stands by itself.

    Example:
        >>> folded("CAFE" + chr(0x301)) == folded("caf" + chr(0xE9))
        True
    """
    if text.isascii():
        return text.lower()
    return normalize("NFC", normalize("NFC", text).casefold())


def alike(name: str, others: Collection[str]) -> list[str]:
    """Return those of some names, which have no line ends, that some stores take for one name.

    Example:
        >>> alike("v1", ["V1", "v2"]), alike("v3", ["V1", "v2"])
        (['V1'], [])
    """
    wanted, whole = folded(name), "\n".join(others)
    # There may be thousands, and mostly none is.
    if whole.isascii() and f"\n{wanted}\n" not in f"\n{whole.lower()}\n":
        return []
    return [each for each in others if folded(each) == wanted]


def is_absolute(text: str) -> bool:
    """Whether a text means the same place wherever it stands.

    Example:
        >>> is_absolute("data/a"), is_absolute("/lake/a"), is_absolute("file:/lake/a")
        (False, True, True)
    """
    return text.startswith("/") or is_url(text) or _is_file_url(text) is not None


def is_url(text: str) -> bool:
    """Whether a text names its scheme, and where there is one its host.

    Example:
        >>> is_url("file:///lake/a"), is_url("/lake/a"), is_url("file:/lake/a")
        (True, False, False)
    """
    return "://" in text


def escapes(text: str) -> bool:
    """Whether a place may lead out of where it is to stay, as some reader takes it; or is none.

    Deciding takes no such text, and `verify` tells of those that stand in a log.

    Example:
        >>> [escapes(each) for each in ("a/b", "a/../../b", "s3://b/../c", "/x", "")]
        [False, True, True, False, True]
    """
    up = ".." in text and ".." in text.replace("\\", "/").split("/")
    return up or not text or "\0" in text


def local_path(text: str) -> str | None:
    """Return the path from the root that a place on this machine has, its segments as they stand.

    None elsewhere, and where a text is relative.

    Example:
        >>> local_path("FILE:///lake/../a"), local_path("/lake/a"), local_path("s3://lake/a")
        ('/lake/../a', '/lake/a', None)
    """
    found = _is_file_url(text)
    path = found[1] if found else text
    return "/" + path.lstrip("/") if path.startswith("/") else None


def below(location: str, path: str) -> str:
    """Return where a file is that a table names, byte for byte: only what is relative gains.

    Example:
        >>> below("s3://lake/t", "d/a"), below("s3://lake/t", "file:/lake/a")
        ('s3://lake/t/d/a', 'file:/lake/a')
    """
    return path if is_absolute(path) else f"{location}/{path}"


def with_scheme(place: str) -> str:
    """Return an absolute place as a URL: a path from the root lacks its scheme.

    Example:
        >>> with_scheme("/lake/t"), with_scheme("s3://lake/t")
        ('file:///lake/t', 's3://lake/t')
    """
    return f"file://{place}" if place.startswith("/") else place


def family_of(text: str) -> str:
    """Return on which kind of storage a place is: `Place.family`; what is relative is here.

    Example:
        >>> family_of("d/a"), family_of("file:/lake/a"), family_of("s3a://lake/a")
        ('file', 'file', 's3')
    """
    return place_of(text, _ROOT).family


def place_of(text: str, base: Place | None = None) -> Place:
    """Return the place that a text means.

    Args:
        text: A path or URL, taken literally: nothing in it is percent-decoded.
        base: What a relative path is relative to.

    Raises:
        InvalidInputError: It is relative, and nothing was said to what.

    Example:
        >>> place_of("file:///lake//t/../t/a").path
        'lake/t/a'
    """
    path = local_path(text)
    if path is not None:
        return Place(LOCAL, "", _normal(path))
    url = _is_url(text)
    if url is not None:
        return _bucket(url[1].lower(), url[2], url[3] or "", base)
    if is_url(text):
        return Place("", "", text)
    if base is None:
        raise InvalidInputError(f"{text!r} is relative; write /PATH or SCHEME://PATH")
    joined = f"{base.path.rstrip('/')}/{text}" if base.path else text
    return Place(base.family, base.host, _normal(joined) if base.family == LOCAL else joined)


_ROOT: Final = Place(LOCAL, "", "")


@frozen
class FileNames:
    """What the files of one table may be called.

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
        """Work out what every file's names begin with."""
        base = place_of(self.location)
        path = f"{base.path.rstrip('/')}/" if base.path else ""
        folder = Place(base.family, base.host, path)
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "_folders", _urls(folder, base))

    def spellings(self, path: str) -> tuple[str, ...]:
        """Return every text by which a file may be called, the usual one first.

        Below the location that is the relative path, and elsewhere the URL.

        Example:
            >>> FileNames("s3://lake/t").spellings("a")
            ('a', 's3://lake/t/a', 's3a://lake/t/a', 's3n://lake/t/a')
        """
        if not is_absolute(path) and _is_plain(path):
            return path, *(each + path for each in self._folders)
        place = place_of(path, self._base)
        if place.service == self._base.service:
            relative = _inside(place.path, self._base.path)
            # A key that goes on with a slash would be taken for a path from the root.
            if relative and not relative.startswith("/"):
                return relative, *(each + relative for each in self._folders)
        return _urls(place, self._base)

    def usual(self, path: str) -> str:
        """Return what a file is called where nobody says; one text a file.

        Example:
            >>> FileNames("file:///lake/t").usual("/lake/t/a")
            'a'
        """
        return path if _is_surely_usual(path) else self.spellings(path)[0]

    def usual_in_log(self, path: str) -> str:
        """Return what a file that stands in a log is called, as those who wrote the log knew it.

        Older clients took some of Azure's spellings for other files; what they wrote is sound.

        Example:
            >>> FileNames("s3://lake/t").usual_in_log("wasb://c@x.blob.core.windows.net/a")
            'wasb://c@x.blob.core.windows.net/a'
        """
        return path if _came_later(path) else self.usual(path)

    def are_usual(self, paths: Sequence[str]) -> bool:
        """Whether some paths are what their files are called, as a quick look tells.

        False: ask for each.

        Example:
            >>> names = FileNames("file:///lake/t")
            >>> names.are_usual(["a", "b/c"]), names.are_usual(["a", "file:///lake/t/b"])
            (True, False)
        """
        return _is_surely_usual("/".join(paths))

    def check(self, path: str) -> None:
        """Refuse a path that some reader takes for another file than others do.

        Raises:
            InvalidChangeError: It is spelled in a way that no one else would find it by, has a `.`
                or `..` segment in a bucket's key, is a chain of file systems or half a URL, or
                carries credentials.

        Example:
            >>> FileNames("s3://lake/t").check("zip:://s3://lake/a")
            Traceback (most recent call last):
            ledger.model.errors.InvalidChangeError: file path 'zip:://s3://lake/a' is a chain of \
file systems; name the file itself
        """
        if carries_credentials(path):
            raise InvalidChangeError(f"file path {advice(path)}")
        if _is_surely_usual(path) and self._base.family:
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
            f"file path {path!r} is no plain spelling: some readers would look for another file; "
            f"{instead}"
        )


def _inside(path: str, folder: str) -> str:
    start = f"{folder.rstrip('/')}/" if folder else ""
    return path[len(start) :] if path.startswith(start) else ""


def _is_plain(path: str) -> bool:
    """Whether no segment of a relative path is empty, `.` or `..`."""
    return _ODD.isdisjoint(path.split("/"))


def _is_surely_usual(path: str) -> bool:
    """Whether a path is what its file is called, as a quick look tells; False: it may be, too."""
    # What is absolute has a colon, or begins with a segment that is empty.
    return ":" not in path and _is_plain(path)


def _urls(place: Place, base: Place) -> tuple[str, ...]:
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


def _bucket(scheme: str, host: str, key: str, base: Place | None) -> Place:
    family = _FAMILY_OF.get(scheme, scheme)
    azure = _AZURE_HOST(host) if family == "abfs" else None
    if azure is not None:
        # A host has no case; a container's name is a key's part.
        host = f"{azure[1]}@{azure[2].lower()}.dfs.{azure[3].lower()}"
    elif family == "abfs" and base is not None and base.host.startswith(f"{host}@"):
        # The account is the one that the table's own location names.
        host = base.host
    return Place(family, host, key)


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path).strip("/") if path.strip("/") else ""
