"""Errors of the library, grouped by the caller's next step.

The class is the reaction, `kind` is the exact cause for programs, the message is for people:

- `InvalidInputError`: fix what you asked for.
- `NotFoundError`, `AlreadyExistsError`: look at the name.
- `CommitConflictError`: somebody else won; reload, look, ask again.
- `CommitUnknownError`: the outcome could not be found out; read before you retry.
- `DamagedLogError`: stop; stored bytes do not fit. Nothing was repaired.
- `UpgradeRequiredError`: written by a newer lakeledger.
- `UnsupportedError`: a dialect cannot say this.
- `StoreError`: this place cannot hold a ledger, or refuses; mend the place.
- `MissingDependencyError`: install what the message names.

All of them survive pickling (Spark pickles them), since they carry plain positional arguments.
"""

from __future__ import annotations


class LedgerError(Exception):
    """The root of every error that lakeledger raises on purpose."""

    kind: str = "LEDGER"

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message, kind)
        self.message = message
        if kind is not None:
            self.kind = kind

    def __str__(self) -> str:
        return self.message


class InvalidInputError(LedgerError, ValueError):
    """What was asked for cannot be done; the message names the rule and a next step."""

    kind = "ILLEGAL_ARGUMENT"


class TooLargeError(InvalidInputError):
    """A file declares or unpacks to more than the limits for a file of its size.

    The message names the file, the limit and the next step. Nothing was imported or written.
    """

    kind = "TOO_LARGE"


class InvalidTypeError(InvalidInputError):
    """A data type's text or JSON cannot be read, or its parameters are out of range."""


class InvalidNameError(InvalidInputError):
    """A name would not be safe as a path, or is reserved by a format."""


class InvalidChangeError(InvalidInputError):
    """A change contradicts the state it follows or breaks a rule of the table's formats.

    `kind` is one of Paimon's causes: ILLEGAL_ARGUMENT, ILLEGAL_STATE, UNSUPPORTED, RUNTIME,
    COLUMN_NOT_EXIST, COLUMN_ALREADY_EXIST.
    """


class FormatError(InvalidChangeError):
    """A format that the table is declared to stay expressible in cannot express a change.

    `format` is that format, `rule` what it says, `alternative` what can be done instead.
    """

    kind = "UNSUPPORTED"

    def __init__(self, message: str, format: str, rule: str, alternative: str) -> None:  # noqa: A002 - the field's word
        super().__init__(message)
        self.args = (message, format, rule, alternative)
        self.format = format
        self.rule = rule
        self.alternative = alternative


class ColumnNotFoundError(InvalidChangeError):
    """A change names a column, by path, that the schema does not have."""

    kind = "COLUMN_NOT_EXIST"


class ColumnExistsError(InvalidChangeError):
    """A change would give two columns of one struct the same name."""

    kind = "COLUMN_ALREADY_EXIST"


class NotFoundError(LedgerError, LookupError):
    """A database, table, view, snapshot, tag or version does not exist."""

    kind = "NOT_FOUND"


class AlreadyExistsError(LedgerError):
    """A database, table, view or tag of that name exists."""

    kind = "ALREADY_EXISTS"


class TableDroppedError(NotFoundError):
    """The table that this handle stands for was dropped."""

    kind = "TABLE_DROPPED"


class CommitConflictError(LedgerError):
    """Another writer changed the same thing first; nothing of this transaction was written.

    `cell` is what both wanted, `version` and `author` say who won, `winner` is the event that won
    as it stands in the log (None where no single event did, as with `expect_version`).
    """

    kind = "CONFLICT"

    def __init__(
        self,
        message: str,
        cell: str,
        version: int,
        author: str | None = None,
        winner: object | None = None,
    ) -> None:
        super().__init__(message)
        self.args = (message, cell, version, author, winner)
        self.cell = cell
        self.version = version
        self.author = author
        self.winner = winner


class CommitUnknownError(LedgerError):
    """The store gave no answer and reading back gave none either: done or not, nobody knows.

    Nothing was taken back. `commit_id` finds out later; appending it again is safe.
    """

    kind = "UNKNOWN"

    def __init__(self, message: str, commit_id: str, version: int) -> None:
        super().__init__(message)
        self.args = (message, commit_id, version)
        self.commit_id = commit_id
        self.version = version


class DamagedLogError(LedgerError):
    """Stored bytes do not fit: a gap, a torn, changed or unreadable file. `file` names it."""

    kind = "DAMAGED"

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.args = (message, file)
        self.file = file


class UpgradeRequiredError(LedgerError):
    """A file was written by a newer lakeledger than this one."""

    kind = "UPGRADE"


class UnsupportedError(LedgerError):
    """A dialect cannot say this; the message names the field and the dialect."""

    kind = "UNSUPPORTED"


class StoreError(LedgerError):
    """The store cannot be used, or refuses; the message says why, and nothing was written.

    `kind` is NO_SPACE, READ_ONLY, NO_PERMISSION, TOO_LARGE, NAME_TOO_LONG, TOO_MANY_FILES,
    NO_FOLDER, NO_HARD_LINKS, NO_BUCKET or SYSTEM where that is the reason.
    """

    kind = "STORE"


class MissingDependencyError(LedgerError):
    """Something that this feature needs is not installed; the message says how to get it."""

    kind = "DEPENDENCY"
