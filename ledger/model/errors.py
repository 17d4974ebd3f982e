"""Errors of the library, grouped by the caller's next step.

The class tells the caller how to react, `kind` is the exact cause for programs, the message is for
people:

- `InvalidInputError`: fix the request.
- `NotFoundError`, `AlreadyExistsError`: check the name.
- `CommitConflictError`: a concurrent writer won; reload, check, retry.
- `CommitUnknownError`: the outcome of the commit is unknown; read before a retry.
- `DamagedLogError`: stop; stored bytes are missing or changed. Nothing was repaired.
- `UpgradeRequiredError`: written by a newer lakeledger; upgrade.
- `UnsupportedError`: a format or dialect cannot express this.
- `StoreError`: the store is unusable or rejected the operation; fix the store.
- `MissingDependencyError`: install the package that the message names.

All of them survive pickling (Spark pickles them), since they carry plain positional arguments.
"""

from __future__ import annotations


class LedgerError(Exception):
    """Base class of all errors that lakeledger raises on purpose."""

    kind: str = "LEDGER"

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message, kind)
        self.message = message
        if kind is not None:
            self.kind = kind

    def __str__(self) -> str:
        return self.message


class InvalidInputError(LedgerError, ValueError):
    """The request is invalid; the message names the rule and a next step."""

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
    """A change cannot be expressed in one of the table's declared formats.

    `format` is that format, `rule` its rule, `alternative` a change that is possible instead.
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
    """The table of this handle was dropped."""

    kind = "TABLE_DROPPED"


class CommitConflictError(LedgerError):
    """A concurrent writer changed the same thing first; nothing of this transaction was written.

    `cell` is the contested item, `version` and `author` are those of the winning commit, `winner`
    is its conflicting event as in the log (None without a single one, as with `expect_version`).
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
    """The store did not answer, and neither did reading back: the commit's outcome is unknown.

    Nothing was rolled back. `commit_id` finds the outcome later; appending it again is safe.
    """

    kind = "UNKNOWN"

    def __init__(self, message: str, commit_id: str, version: int) -> None:
        super().__init__(message)
        self.args = (message, commit_id, version)
        self.commit_id = commit_id
        self.version = version


class DamagedLogError(LedgerError):
    """A stored file is missing, torn, changed or unreadable; `file` names it."""

    kind = "DAMAGED"

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.args = (message, file)
        self.file = file


class UpgradeRequiredError(LedgerError):
    """A file was written by a newer lakeledger than this one."""

    kind = "UPGRADE"


class UnsupportedError(LedgerError):
    """A format or dialect cannot express this; the message names the field and the format."""

    kind = "UNSUPPORTED"


class StoreError(LedgerError):
    """The store cannot be used or rejected the operation; nothing was written.

    The message says why.

    `kind` is NO_SPACE, READ_ONLY, NO_PERMISSION, TOO_LARGE, NAME_TOO_LONG, TOO_MANY_FILES,
    NO_FOLDER, NO_HARD_LINKS, NO_BUCKET or SYSTEM where that is the reason.
    """

    kind = "STORE"


class MissingDependencyError(LedgerError):
    """A package that this feature needs is not installed; the message says how to install it."""

    kind = "DEPENDENCY"
