"""Options shared by commands: ledger, instant, author, message, profiles.

    profile = "work"                        # the default profile

    [work]
    ledger = "s3://lake/ledger"
    author = "ada"
    storage-options = { endpoint_url = "http://localhost:8333" }

    [home]
    ledger = "~/lake"

The file is `$LAKELEDGER_CONFIG`, or `lakeledger.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from attrs import evolve, field, frozen
from cyclopts import Group, Parameter, Token

from ledger.cli.changes import read_pairs
from ledger.cli.discovery import current_ledger
from ledger.cli.exits import UsageError
from ledger.cli.output import Output, Screen
from ledger.ledger import Ledger
from ledger.ledger import open as open_ledger
from ledger.locations import LOCAL, family_of, is_absolute
from ledger.log.request import CommitOptions, now_millis
from ledger.model.errors import InvalidInputError
from ledger.model.instant import instant_from_arguments
from ledger.model.instant_text import ParsedInstant, parse_instant, parse_time
from ledger.model.messages import name_hint
from ledger.model.types import LONG_MAX
from ledger.stores.wrappers import Trust
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import HasHandle, handle_of

_KEYS = ("ledger", "author", "storage-options")


@frozen
class Profile:
    """A named ledger.

    Attributes:
        name: Name of the profile.
        ledger: Root of the ledger.
        author: Default author of commits; None for `user@host`.
        storage_options: Options of the store.
    """

    name: str
    ledger: str
    author: str | None = None
    storage_options: Mapping[str, Any] = field(factory=dict, repr=False)


def profile_file() -> Path:
    """Return the path of the profile file."""
    said = os.environ.get("LAKELEDGER_CONFIG")
    if said:
        return Path(said)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "lakeledger.toml"


def profile_names() -> list[str]:
    """Return the names of the profiles, sorted; empty if there is no file."""
    return sorted(_profile_tables(_read_profile_file(profile_file())))


def find_profile(name: str | None) -> Profile | None:
    """Return a profile; the file's default profile if no name is given.

    Raises:
        UsageError: The profile does not exist or the file cannot be read; the message names the
            file and the problem.
    """
    file = profile_file()
    document = _read_profile_file(file)
    wanted = document.get("profile") if name is None else name
    if wanted is None:
        return None
    tables = _profile_tables(document)
    if not isinstance(wanted, str) or wanted not in tables:
        there = name_hint(str(wanted), sorted(tables)) if tables else "it has no profiles yet"
        raise UsageError(f"{file} has no profile {wanted!r}; {there}")
    return _parse_profile(file, wanted, tables[wanted])


def _read_profile_file(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _profile_tables(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: value for name, value in document.items() if isinstance(value, dict)}


def _parse_profile(file: Path, name: str, said: Mapping[str, Any]) -> Profile:
    here = f"profile {name} of {file}"
    for each in said:
        if each not in _KEYS:
            raise UsageError(f"{here} has an unknown key {each!r}; {name_hint(each, _KEYS)}")
    root, author = said.get("ledger"), said.get("author")
    options = said.get("storage-options", {})
    if not isinstance(root, str) or not root:
        raise UsageError(f'{here} has no root of the ledger; add: ledger = "FOLDER or URL"')
    if not isinstance(author, str | None) or not isinstance(options, dict):
        raise UsageError(f"{here}: author must be a string, and storage-options a table")
    place = os.path.expanduser(root)  # noqa: PTH111 - of a URL, a path would lose a slash
    if not is_absolute(place):
        raise UsageError(f"{here}: {root} is a relative path; write an absolute path or a URL")
    return Profile(name, place, author, options)


A = TypeVar("A")
B = TypeVar("B")
A_co = TypeVar("A_co", covariant=True)

_WHERE = Group("Ledger and output", sort_key=30)
_WHO = Group("Commit", sort_key=20)
_WHEN = Group("Instant (at most one; default: now)", sort_key=10)


def tables_of(typed: Any) -> list[str]:
    """Return the tables of the ledger that a partial command line names, for completion.

    Args:
        typed: The arguments that cyclopts has parsed so far.
    """
    return _flags_of_partial_line(typed).open().tables()


def tags_of(typed: Any) -> list[str]:
    """Return the tags of the table that a partial command line names, for completion."""
    return sorted(_flags_of_partial_line(typed).table(typed["name"].raw).at().tags)


def branches_of(typed: Any) -> list[str]:
    """Return the branches of the table that a partial command line names, for completion."""
    return sorted(_flags_of_partial_line(typed).table(typed["name"].raw).state.all_branches)


def _flags_of_partial_line(typed: Any) -> LedgerFlags:
    root = typed["--ledger"].raw or os.environ.get("LAKELEDGER_URL")
    named = typed["--profile"].raw or os.environ.get("LAKELEDGER_PROFILE")
    return LedgerFlags(root, typed["--storage-option"].raw_tokens, profile=named)


TableName = Annotated[str, Parameter(help="DATABASE.TABLE.", completer=tables_of)]
"""Name of the table that a command works on."""

OnBranch = Annotated[
    str | None,
    Parameter(show_default=False, help="Branch to use; main if omitted.", completer=branches_of),
]
"""Branch that a command works on; None is main."""

Confirmed = Annotated[
    bool,
    Parameter(
        name="--yes",
        negative="",
        show_default=False,
        help="Commit the plan; without it, only show the plan.",
    ),
]
"""Consent to a commit that another command cannot undo, or that is worth a look before."""


@Parameter(name="*", group=_WHERE)
@frozen
class LedgerFlags:
    """Ledger that a command works on, and output format."""

    ledger: Annotated[
        str | None,
        Parameter(
            env_var="LAKELEDGER_URL",
            help="Root of the ledger: a folder or a URL; default: the current folder's ledger.",
        ),
    ] = None
    storage_option: Annotated[
        tuple[str, ...],
        Parameter(
            negative="", show_default=False, help="KEY=VALUE option of the store; repeatable."
        ),
    ] = ()
    output: Annotated[
        Output, Parameter(help="Output format: text, one JSON document, or JSON lines.")
    ] = "text"
    profile: Annotated[
        str | None,
        Parameter(
            env_var="LAKELEDGER_PROFILE",
            help="Name of a ledger in ~/.config/lakeledger.toml.",
            completer=lambda _: profile_names(),
        ),
    ] = None

    trust: Annotated[
        Trust,
        Parameter(
            env_var="LAKELEDGER_TRUST",
            help="all: use caches that match the log; log: fold everything from the log alone.",
        ),
    ] = "all"

    @property
    def screen(self) -> Screen:
        """Output of the command."""
        return Screen(self.output)

    def named(self) -> Profile | None:
        """Return the profile that names the ledger; None if no profile does.

        In order of precedence the ledger is named by an option, by an environment variable, by the
        current folder if that is in a ledger, and by the default profile.

        Raises:
            UsageError: The profile does not exist, or both a root and a profile are given.
        """
        # Arguments take precedence over environment variables.
        root = self.ledger not in {None, os.environ.get("LAKELEDGER_URL")}
        name = self.profile not in {None, os.environ.get("LAKELEDGER_PROFILE")}
        if self.ledger and self.profile is not None and root == name:
            raise UsageError(f"give one of --ledger {self.ledger} and --profile {self.profile}")
        if self.ledger and not name:
            return None
        if self.profile is None and current_ledger() is not None:
            return None
        return find_profile(self.profile)

    def or_at(self, url: str | None) -> LedgerFlags:
        """Return these flags with the root that a command takes as its argument; None for theirs.

        Raises:
            UsageError: An option names another root.
        """
        # A root from the environment is only a default.
        if url is not None and self.ledger not in {None, url, os.environ.get("LAKELEDGER_URL")}:
            raise UsageError(f"two ledgers are given, {url} and {self.ledger}; give one")
        return evolve(self, ledger=url or self.ledger)

    def storage_options(self) -> dict[str, Any]:
        """Return the options of the store.

        Raises:
            UsageError: An option is not KEY=VALUE.
        """
        profile = self.named()
        kept = {} if profile is None else profile.storage_options
        return {**kept, **dict(read_pairs("--storage-option", self.storage_option))}

    def url(self) -> str:
        """Return the root of the ledger.

        Raises:
            UsageError: No root is given, and the current folder is in no ledger.
        """
        profile = self.named()
        root = self.ledger if profile is None else profile.ledger
        if root:
            return root
        found = current_ledger()
        if found is None:
            raise UsageError(
                "no ledger is given; use --ledger URL, set LAKELEDGER_URL, run the command in a "
                f"ledger's folder, or add a profile to {profile_file()}"
            )
        return str(found)

    def open_maybe_uninitialized(self, author: str | None = None) -> Ledger:
        """Open the root of a ledger that may not be initialized yet.

        Its commits have the author of the environment, unless a command names one.

        Raises:
            StoreError: The store does not answer.
        """
        url, options = self.url(), self.storage_options()
        author = os.environ.get("LAKELEDGER_AUTHOR") or author
        if family_of(url) == LOCAL:
            return open_ledger(url, options, author=author, trust=self.trust)
        from ledger.stores.services import wait_for_first_answer

        return wait_for_first_answer(
            lambda: open_ledger(url, options, author=author, trust=self.trust), url, options
        )

    def with_caches(self) -> LedgerFlags:
        """Return these flags with trust in caches, for commands that check the caches."""
        return evolve(self, trust="all")

    def open(self) -> Ledger:
        """Open the ledger.

        Raises:
            NotFoundError: There is no ledger; a typo must not create one.
        """
        profile = self.named()
        author = None if profile is None else profile.author
        lake = self.open_maybe_uninitialized(author)
        handle_of(lake).refuse_missing()
        return lake

    def table(self, name: str) -> Table:
        """Open a table of the ledger.

        Raises:
            NotFoundError: The table does not exist.
        """
        lake = self.open()
        if "." not in name:
            named = tables_of_that_name(lake, name)
            hint = f"did you mean {' or '.join(named)}?" if named else "write DATABASE.TABLE"
            raise UsageError(f"{name!r} is not a full name: {hint}")
        return lake.table(name)


def tables_of_that_name(lake: Ledger, name: str) -> list[str]:
    """Return up to three tables of that name in any database."""
    return [each for each in lake.tables() if each.partition(".")[2] == name][:3]


@Parameter(name="*", group=_WHO)
@frozen
class AuthorFlags:
    """Author and message of a commit."""

    author: Annotated[
        str | None,
        Parameter(env_var="LAKELEDGER_AUTHOR", help="Author of the commit; user@host if omitted."),
    ] = None
    message: Annotated[str | None, Parameter(help="Commit message.")] = None

    def options(self) -> CommitOptions:
        """Return the keyword arguments of calls that commit."""
        given: CommitOptions = {}
        if self.author is not None:
            given["author"] = self.author
        if self.message is not None:
            given["message"] = self.message
        return given


@Parameter(name="*", group=_WHO)
@frozen
class CommitFlags(AuthorFlags):
    """Author, message, idempotency key and expected version of a commit."""

    commit_id: Annotated[
        str | None,
        Parameter(help="Idempotency key: the same key again returns the first commit."),
    ] = None
    expect_version: Annotated[
        int | None, Parameter(help="Commit only if this is the current version; fail otherwise.")
    ] = None

    def options(self) -> CommitOptions:
        """Return the keyword arguments of calls that commit."""
        given = AuthorFlags.options(self)
        if self.commit_id is not None:
            given["commit_id"] = self.commit_id
        if self.expect_version is not None:
            given["expect_version"] = self.expect_version
        return given

    def committed(self, lake: Ledger) -> bool:
        """Return whether the catalog has the commit id, for calls that do not return it."""
        return self.commit_id is not None and lake.find_commit(self.commit_id) is not None

    def once(
        self,
        public: HasHandle[CommitIdLookup[A]],
        words: Sequence[object],
        ask: Callable[[CommitOptions], B],
    ) -> A | B:
        """Commit a request, unless it was already committed under the same commit id.

        For commands that resolve their arguments against the current state: on a retry the state
        may have changed.

        Args:
            public: Table or ledger to commit to.
            words: The command and its arguments, as the identity of the request.
            ask: Resolves the request against the current state and commits it with the options.
        """
        committed = handle_of(public).committed_before(self.commit_id, words)
        return ask({**self.options(), "asked": words}) if committed is None else committed


class CommitIdLookup(Protocol[A_co]):
    """Table or ledger handle that looks up earlier requests by commit id."""

    def committed_before(self, commit_id: str | None, asked: Any) -> A_co | None:
        """Return the commit of a request under an id, if there is one."""


@Parameter(name="*", group=_WHEN)
@frozen
class InstantFlags:
    """Instant to read a table at."""

    at: Annotated[
        str | None,
        Parameter(
            help="Version 7, HEAD~3 or -3 (3 commits ago), tag:NAME, branch:NAME, snapshot:3, now, "
            "yesterday, 15m ago, or a date or time, in the local time zone unless it has its own."
        ),
    ] = None
    version: Annotated[int | None, Parameter(help="Version (commit number).")] = None
    timestamp: Annotated[
        str | None, Parameter(help="ISO 8601 time, yesterday, 15m ago, or Unix milliseconds.")
    ] = None
    snapshot: Annotated[int | None, Parameter(help="Snapshot id.")] = None
    tag: Annotated[str | None, Parameter(help="Tag name.", completer=tags_of)] = None

    def named(self) -> dict[str, Any]:
        """Return the keyword arguments of `Table.at`; none for the newest version.

        Raises:
            UsageError: More than one instant is given, or one cannot be parsed.
        """
        given: dict[str, Any] = {
            "instant": self.at,
            "version": self.version,
            "timestamp": self.timestamp,
            "snapshot": self.snapshot,
            "tag": self.tag,
        }
        named = {key: value for key, value in given.items() if value is not None}
        if len(named) > 1:
            raise UsageError("give only one of --at, --version, --timestamp, --snapshot and --tag")
        if self.timestamp is not None:
            read_time(self.timestamp)
        return named if self.at is None or read_instant(self.at) is not None else {}

    def of(self, table: Table) -> TableAt:
        """Return the table at the instant."""
        return table.at(**self.named())

    def __str__(self) -> str:
        named = self.named()
        text = named.pop("instant", None)
        if self.timestamp is not None:
            named["timestamp"] = read_time(self.timestamp)
        instant = instant_from_arguments(**named) if text is None else read_instant(text)
        return "" if instant is None else f" at {instant}"


def read_instant(text: str) -> ParsedInstant | None:
    """Parse an instant as on the command line, for an early error; None is the newest version.

    Raises:
        UsageError: The text is not an instant.

    Example:
        >>> str(read_instant("tag:v1")), str(read_instant("HEAD~3")), read_instant("now")
        ('tag v1', 'HEAD~3', None)
    """
    try:
        return parse_instant(text, now_millis())
    except InvalidInputError as error:
        raise UsageError(str(error)) from error


def read_time(text: str, *, date: Literal["begin", "end"] = "end") -> int:
    """Parse a time as on the command line: Unix time in milliseconds.

    Raises:
        UsageError: The text is not a time.
    """
    try:
        return parse_time(text, now_millis(), date=date)
    except InvalidInputError as error:
        raise UsageError(str(error)) from error


def check_one_or_more(_type: Any, value: int | None) -> None:
    """Reject numbers below 1 or above 64 bits; cyclopts' own validators are slow to import.

    Raises:
        ValueError: The number is out of range.

    Example:
        >>> check_one_or_more(int, 0)
        Traceback (most recent call last):
        ValueError: Must be >= 1.
    """
    if value is not None and value < 1:
        raise ValueError("Must be >= 1.")
    if value is not None and value > LONG_MAX:
        raise ValueError(f"Must be <= {LONG_MAX}.")


def options_as_texts(_type: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Convert options and their values to texts, in command-line order: a converter for cyclopts.

    The annotation has to say texts: if pydantic is loaded, cyclopts checks it.
    """
    return tuple(f"{token.keyword or ''} {token.value}" for token in tokens)


def pairs(written: Iterable[str]) -> list[tuple[str, str]]:
    """Split the texts of `options_as_texts` into pairs of option and value.

    Example:
        >>> pairs(["--add zip STRING", "--drop city"])
        [('--add', 'zip STRING'), ('--drop', 'city')]
    """
    return [(option, value) for option, _, value in (each.partition(" ") for each in written)]
