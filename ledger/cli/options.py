"""Options shared by commands: ledger, instant, author, message, profiles.

    profile = "work"                        # what is used where nothing else is said

    [work]
    ledger = "s3://lake/ledger"
    author = "ada"
    storage-options = { endpoint_url = "http://localhost:8333" }

    [home]
    ledger = "~/lake"

The file is `lakeledger.toml` in `$XDG_CONFIG_HOME` or `~/.config`, or what `LAKELEDGER_CONFIG`
says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

from attrs import evolve, field, frozen
from cyclopts import Group, Parameter, Token

from ledger.cli.changes import key_and_value
from ledger.cli.exits import UsageError
from ledger.cli.output import Output, Screen
from ledger.ledger import Ledger
from ledger.ledger import open as open_ledger
from ledger.locations import LOCAL, family_of, is_absolute
from ledger.log.request import CommitOptions
from ledger.model.errors import NotFoundError
from ledger.model.instant import iso_moment
from ledger.model.messages import meant
from ledger.model.types import LONG_MAX, whole_number
from ledger.stores.wrappers import Trust
from ledger.table import Table
from ledger.table_at import TableAt

_KEYS = ("ledger", "author", "storage-options")


@frozen
class Profile:
    """A ledger by name.

    Attributes:
        name: What the user calls it.
        ledger: The ledger's root.
        author: Who commits when a command does not say; None: `user@host`.
        storage_options: For the store.
    """

    name: str
    ledger: str
    author: str | None = None
    storage_options: Mapping[str, Any] = field(factory=dict, repr=False)


def profile_file() -> Path:
    """Return where the user's profiles are."""
    said = os.environ.get("LAKELEDGER_CONFIG")
    if said:
        return Path(said)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "lakeledger.toml"


def profile_names() -> list[str]:
    """Return the names of the user's profiles, sorted; none where there is no file."""
    return sorted(_tables(_document(profile_file())))


def find_profile(name: str | None) -> Profile | None:
    """Return a profile; the one that the file says is used, when no name is given.

    Raises:
        UsageError: There is none of that name, or the file cannot be read; the message names the
            file and what is wrong.
    """
    file = profile_file()
    document = _document(file)
    wanted = document.get("profile") if name is None else name
    if wanted is None:
        return None
    tables = _tables(document)
    if not isinstance(wanted, str) or wanted not in tables:
        there = meant(str(wanted), sorted(tables)) if tables else "there is none yet"
        raise UsageError(f"{file} has no profile {wanted!r}; {there}")
    return _profile(file, wanted, tables[wanted])


def _document(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _tables(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: value for name, value in document.items() if isinstance(value, dict)}


def _profile(file: Path, name: str, said: Mapping[str, Any]) -> Profile:
    here = f"profile {name} of {file}"
    for each in said:
        if each not in _KEYS:
            raise UsageError(f"{here} says {each!r}; {meant(each, _KEYS)}")
    root, author = said.get("ledger"), said.get("author")
    options = said.get("storage-options", {})
    if not isinstance(root, str) or not root:
        raise UsageError(f'{here} does not say where the ledger is: ledger = "FOLDER or URL"')
    if not isinstance(author, str | None) or not isinstance(options, dict):
        raise UsageError(f"{here}: author is a text, and storage-options a table")
    place = os.path.expanduser(root)  # noqa: PTH111 - of a URL, a path would lose a slash
    if not is_absolute(place):
        raise UsageError(f"{here}: {root} is relative, and to what nobody knows; write it whole")
    return Profile(name, place, author, options)


A = TypeVar("A")
B = TypeVar("B")
A_co = TypeVar("A_co", covariant=True)

_WHERE = Group("Ledger and output", sort_key=30)
_WHO = Group("Commit", sort_key=20)
_WHEN = Group("Instant (name at most one; none: as it is now)", sort_key=10)


def tables_of(typed: Any) -> list[str]:
    """Return the tables of the ledger that a half-typed command line names, for a shell.

    Args:
        typed: What cyclopts knows of the line so far.
    """
    return _half_typed(typed).open().tables()


def tags_of(typed: Any) -> list[str]:
    """Return the tags of the table that a half-typed command line names, for a shell."""
    return sorted(_half_typed(typed).table(typed["name"].raw).at().tags)


def branches_of(typed: Any) -> list[str]:
    """Return the branches of the table that a half-typed command line names, for a shell."""
    return sorted(_half_typed(typed).table(typed["name"].raw).state.branches)


def _half_typed(typed: Any) -> LedgerFlags:
    root = typed["--ledger"].raw or os.environ.get("LAKELEDGER_URL")
    named = typed["--profile"].raw or os.environ.get("LAKELEDGER_PROFILE")
    return LedgerFlags(root, typed["--storage-option"].raw_tokens, profile=named)


TableName = Annotated[str, Parameter(help="DATABASE.TABLE.", completer=tables_of)]
"""What most commands are about."""

OnBranch = Annotated[
    str | None,
    Parameter(show_default=False, help="The branch that it is for.", completer=branches_of),
]
"""Which line of a table is meant; None is main."""


@Parameter(name="*", group=_WHERE)
@frozen
class LedgerFlags:
    """Which ledger a command works on, and how it prints."""

    ledger: Annotated[
        str | None,
        Parameter(env_var="LAKELEDGER_URL", help="The ledger's root: a folder or a URL."),
    ] = None
    storage_option: Annotated[
        tuple[str, ...],
        Parameter(negative="", show_default=False, help="KEY=VALUE for the store; repeatable."),
    ] = ()
    output: Annotated[Output, Parameter(help="Text, one JSON document, or JSON a line.")] = "text"
    profile: Annotated[
        str | None,
        Parameter(
            env_var="LAKELEDGER_PROFILE",
            help="A ledger by its name in ~/.config/lakeledger.toml.",
            completer=lambda _: profile_names(),
        ),
    ] = None

    trust: Annotated[
        Trust,
        Parameter(
            env_var="LAKELEDGER_TRUST",
            help="all: caches that fit the log, too; log: fold everything from the log alone.",
        ),
    ] = "all"

    @property
    def screen(self) -> Screen:
        """Where the command prints to."""
        return Screen(self.output)

    def named(self) -> Profile | None:
        """Return the profile that says where the ledger is; None where the root itself is given.

        Raises:
            UsageError: There is no such profile, or a root is given beside it.
        """
        # What is typed goes before what the environment says.
        root = self.ledger not in {None, os.environ.get("LAKELEDGER_URL")}
        name = self.profile not in {None, os.environ.get("LAKELEDGER_PROFILE")}
        if self.ledger and self.profile is not None and root == name:
            raise UsageError(f"give one of --ledger {self.ledger} and --profile {self.profile}")
        if self.ledger and not name:
            return None
        return find_profile(self.profile)

    def storage_options(self) -> dict[str, Any]:
        """Return the options for the store.

        Raises:
            UsageError: One is not KEY=VALUE.
        """
        profile = self.named()
        kept = {} if profile is None else profile.storage_options
        return {**kept, **dict(key_and_value(each) for each in self.storage_option)}

    def url(self) -> str:
        """Return the ledger's root.

        Raises:
            UsageError: Nobody said where it is.
        """
        profile = self.named()
        root = self.ledger if profile is None else profile.ledger
        if not root:
            raise UsageError(
                "which ledger? give --ledger URL, set LAKELEDGER_URL, or name it in "
                f"{profile_file()}"
            )
        return root

    def begun_or_not(self, author: str | None = None) -> Ledger:
        """Open the place where a ledger is, or may begin.

        Raises:
            StoreError: Nobody answers there.
        """
        url, options = self.url(), self.storage_options()
        if family_of(url) == LOCAL:
            return open_ledger(url, options, author=author, trust=self.trust)
        from ledger.stores.services import first_answer

        return first_answer(
            lambda: open_ledger(url, options, author=author, trust=self.trust), url, options
        )

    def with_caches(self) -> LedgerFlags:
        """Return the place for a command that is about caches, whatever others are to trust."""
        return evolve(self, trust="all")

    def open(self) -> Ledger:
        """Open the ledger.

        Raises:
            NotFoundError: There is none; a typo must not begin one.
        """
        profile = self.named()
        author = None if profile is None else profile.author
        lake = self.begun_or_not(author)
        lake.refuse_lost_root()
        if not lake.is_begun:
            raise NotFoundError(
                f"there is no ledger at {lake.url}; begin one with: lakeledger init {self.url()}"
            )
        return lake

    def table(self, name: str) -> Table:
        """Open a table of the ledger.

        Raises:
            NotFoundError: There is none of that name.
        """
        lake = self.open()
        if "." not in name:
            named = named_so(lake, name)
            hint = f"did you mean {' or '.join(named)}?" if named else "write DATABASE.TABLE"
            raise UsageError(f"{name!r} is not a full name: {hint}")
        return lake.table(name)


def named_so(lake: Ledger, name: str) -> list[str]:
    """Return tables that are called so in their databases; at most three."""
    return [each for each in lake.tables() if each.partition(".")[2] == name][:3]


@Parameter(name="*", group=_WHO)
@frozen
class CommitFlags:
    """Who commits, why, under which id, and onto what."""

    author: Annotated[
        str | None,
        Parameter(env_var="LAKELEDGER_AUTHOR", help="Who commits; user@host when left out."),
    ] = None
    message: Annotated[str | None, Parameter(help="Why.")] = None
    commit_id: Annotated[
        str | None,
        Parameter(help="A key of your own: the same key again gives the first commit."),
    ] = None
    expect_version: Annotated[
        int | None, Parameter(help="Land right after this version, or be refused.")
    ] = None

    def options(self) -> CommitOptions:
        """Return the keyword arguments of every call that writes."""
        given: CommitOptions = {}
        if self.author is not None:
            given["author"] = self.author
        if self.message is not None:
            given["message"] = self.message
        if self.commit_id is not None:
            given["commit_id"] = self.commit_id
        if self.expect_version is not None:
            given["expect_version"] = self.expect_version
        return given

    def landed(self, lake: Ledger) -> bool:
        """Whether the catalog has the id already: for calls that return what they made alone."""
        return self.commit_id is not None and lake.find_commit(self.commit_id) is not None

    def once(
        self, handle: Answers[A], words: Sequence[object], ask: Callable[[CommitOptions], B]
    ) -> A | B:
        """Ask for what words mean, unless they were asked under the id before, and landed.

        For every command that looks at what is there before it asks: by the next time that may be
        something else, or gone.

        Args:
            handle: Of what is to be committed to.
            words: The command, and all that was written of what is asked.
            ask: Works out what they mean now, and asks for that with the options that it is given.
        """
        landed = handle.landed_before(self.commit_id, words)
        return ask({**self.options(), "asked": words}) if landed is None else landed


class Answers(Protocol[A_co]):
    """A handle that is asked what came of words: a table's, or a ledger's on its catalog."""

    def landed_before(self, commit_id: str | None, asked: Any) -> A_co | None:
        """Return what was asked in these words under an id, if it landed."""


@Parameter(name="*", group=_WHEN)
@frozen
class InstantFlags:
    """The instant to read a table at."""

    at: Annotated[
        str | None,
        Parameter(
            help="tag:NAME, branch:NAME, snapshot:3, version:7, -3 (so many commits ago), now, "
            "yesterday, 7d or 12h (so long ago), or a day or time, in this machine's zone unless "
            "it says one."
        ),
    ] = None
    version: Annotated[int | None, Parameter(help="Right after this commit.")] = None
    timestamp: Annotated[
        str | None, Parameter(help="As of an ISO time with its zone, or Unix milliseconds.")
    ] = None
    snapshot: Annotated[int | None, Parameter(help="A snapshot's id.")] = None
    tag: Annotated[str | None, Parameter(help="A tag's name.", completer=tags_of)] = None

    def named(self) -> dict[str, Any]:
        """Return the keyword arguments of `Table.at`.

        Raises:
            UsageError: More than one instant is named, or one cannot be read.
        """
        given: dict[str, Any] = {
            "version": self.version,
            "timestamp": None if self.timestamp is None else read_time(self.timestamp),
            "snapshot": self.snapshot,
            "tag": self.tag,
        }
        named = {key: value for key, value in given.items() if value is not None}
        if len(named) + (self.at is not None) > 1:
            raise UsageError("name one instant only: --at, --version, --timestamp, --snapshot, ...")
        return named if self.at is None else read_instant(self.at)

    def of(self, table: Table) -> TableAt:
        """Return the table at the instant."""
        named = self.named()
        ago = named.pop("ago", None)
        return table.at(**named) if ago is None else table.at(version=self.version_of(table, ago))

    @staticmethod
    def version_of(table: Table, ago: int) -> int:
        """Return the version so many commits before the newest.

        Raises:
            NotFoundError: There are not so many.
        """
        newest = table.state.version
        if ago > newest:
            raise NotFoundError(f"there are only {newest} commits before the newest, not {ago}")
        return newest - ago

    def __str__(self) -> str:
        named = self.named()
        if "ago" in named:
            return f" {named['ago']} {'commit' if named['ago'] == 1 else 'commits'} ago"
        return "".join(f" at {key} {value}" for key, value in named.items())


def read_instant(text: str) -> dict[str, Any]:
    """Return what `--at` means, as keyword arguments of `Table.at`.

    Raises:
        UsageError: It is no instant.

    Example:
        >>> read_instant("tag:v1"), read_instant("branch:audit"), read_instant("snapshot:3")
        ({'tag': 'v1'}, {'branch': 'audit'}, {'snapshot': 3})
    """
    if text in {"now", "main", "branch:main"}:
        return {}
    ago = whole_number(text[1:]) if text.startswith("-") else None
    if ago is not None:
        return {"ago": ago}
    word, colon, rest = text.partition(":")
    if colon and word in {"tag", "branch"}:
        return {word: rest}
    if colon and word in {"snapshot", "version"}:
        number = whole_number(rest)
        if number is None:
            raise UsageError(f"--at {text}: {rest!r} is no whole number")
        return {word: number}
    if text.isdecimal() and len(text) < _DIGITS_OF_MILLIS:
        raise UsageError(
            f"--at {text}: {text} what? write version:{text}, snapshot:{text}, or -{text} for so "
            "many commits ago"
        )
    try:
        return {"timestamp": read_time(rest if word == "timestamp" else text)}
    except UsageError as error:
        meant = "" if colon else f"a tag is asked for as tag:{text}, a branch as branch:{text}; "
        raise UsageError(
            f"{text!r} is no instant; {meant}write now, -3 (commits ago), tag:NAME, branch:NAME, "
            f"snapshot:3, version:7, or a time: {_TIMES}"
        ) from error


_DIGITS_OF_MILLIS = 12
_TIMES = "2013-01-31, 2013-01-31T12:00:00Z, yesterday, 30d, 12h or 15m ago, Unix milliseconds"
_AGO = re.compile(r"(?P<count>[0-9]{1,6})(?P<unit>[dhm])", re.ASCII)
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def read_time(text: str) -> datetime | int:
    """Return a time: ISO 8601, `yesterday`, `30d`, `12h` or `15m` ago, or Unix milliseconds.

    A time without a zone is this machine's time; a day alone is as of its end.

    Raises:
        UsageError: It is neither.
    """
    number = whole_number(text)
    if number is not None and len(text) >= _DIGITS_OF_MILLIS:
        return number
    try:
        ago = _AGO.fullmatch("1d" if text == "yesterday" else text)
        if ago is not None:
            passed = timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
            return datetime.now().astimezone() - passed  # noqa: TID251 - by this machine's clock
        read = iso_moment(text)
        # A time without a zone is this machine's; a day is read as it ends.
        if len(text) == len("2013-01-31"):
            read += timedelta(days=1, microseconds=-1000)
        return read if read.tzinfo is not None else read.astimezone()
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is no time; write {_TIMES}") from error


def one_or_more(_type: Any, value: int | None) -> None:
    """Refuse a number below 1, or above 64 bits: a validator, where cyclopts' own are slow to come.

    Raises:
        ValueError: It is.

    Example:
        >>> one_or_more(int, 0)
        Traceback (most recent call last):
        ValueError: Must be >= 1.
    """
    if value is not None and value < 1:
        raise ValueError("Must be >= 1.")
    if value is not None and value > LONG_MAX:
        raise ValueError(f"Must be <= {LONG_MAX}.")


def as_written(_type: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return each option with its value as one text, in their order: a converter for cyclopts.

    Texts, as the parameter's annotation says: where pydantic is loaded, cyclopts checks that.
    """
    return tuple(f"{token.keyword or ''} {token.value}" for token in tokens)


def pairs(written: Iterable[str]) -> list[tuple[str, str]]:
    """Return what `as_written` gave as pairs of option and value.

    Example:
        >>> pairs(["--add zip STRING", "--drop city"])
        [('--add', 'zip STRING'), ('--drop', 'city')]
    """
    return [(option, value) for option, _, value in (each.partition(" ") for each in written)]
