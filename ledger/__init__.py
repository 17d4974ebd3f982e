"""lakeledger: one append-only ledger of table changes.

The packages and modules, each importing only those before it:

- `model`: values: data types, schema, snapshot, file change, errors.
- `locations`: canonical forms and containment of paths and URLs.
- `events`: all requested changes, and all facts that the log can hold.
- `state`: the pure fold of events into states; `decide`: from requested changes to events.
- `formats`: the parts of a table format, and the discovery of installed formats.
- `transforms`: partition and sort transforms of columns; `sql`: `ALTER TABLE` as changes.
- `stores`: bytes under keys with an atomic put-if-absent.
- `observing`: log events, spans and metrics.
- `log`: commits: codec, hash chain, checkpoints, the one retry loop.
- `files`: data files, their footers, and which of them are live.
- `planning`: which files a filter has to read.
- `history`: past states, verification of a log and its derived files, and garbage collection.
- `audit`: differences between states, undo and restore, and the commits that shaped each column.
- `opening`: opening a ledger and its tables, creating and dropping them.
- `relocation`: export, import and replay of ledgers and tables.
- `table_handle`, `table_writes`, `ledger_handle`, `ledger_writes`: what public objects are made of.
- `ledger`, `table`, `table_at`, `table_branch`, `updates`, `plan`: the public API; `following`:
  projection of files after commits.
- `cli`: the `lakeledger` command.

`FORMAT.md` describes the bytes on the store; `DECISIONS.md` gives the reasons.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported eagerly, so that tests and tools can patch or wrap store classes.
import ledger.stores  # noqa: F401

if TYPE_CHECKING:
    __version__: str
    from ledger.decide.change_json import (
        schema_change_from_json,
        schema_change_to_json,
    )
    from ledger.decide.schema_batch import evolve
    from ledger.decide.schema_json import schema_from_json
    from ledger.events.schema import (
        AddColumn,
        AddPartitionField,
        DropColumn,
        DropPrimaryKey,
        Move,
        RemoveOption,
        RemovePartitionField,
        RenameColumn,
        RenamePartitionField,
        ReplaceSortOrder,
        SchemaChange,
        SetIdentifierFields,
        SetOption,
        SortColumn,
        UndropColumn,
        UpdateColumnComment,
        UpdateColumnDefaultValue,
        UpdateColumnNullability,
        UpdateColumnPosition,
        UpdateColumnType,
        UpdateComment,
        UpdatePartitionSpec,
    )
    from ledger.files.parquet_schema import schema_of_files
    from ledger.files.snapshot_plan import SnapshotPlan
    from ledger.ledger import Ledger
    from ledger.ledger import open as open  # noqa: A004 - public, though not in __all__
    from ledger.model.errors import (
        AlreadyExistsError,
        ColumnExistsError,
        ColumnNotFoundError,
        CommitConflictError,
        CommitUnknownError,
        DamagedLogError,
        FormatError,
        InvalidChangeError,
        InvalidInputError,
        InvalidNameError,
        InvalidTypeError,
        LedgerError,
        MissingDependencyError,
        NotFoundError,
        StoreError,
        TableDroppedError,
        TooLargeError,
        UnsupportedError,
        UpgradeRequiredError,
    )
    from ledger.model.file_change import FileChange
    from ledger.model.functions import (
        FileFunctionDefinition,
        Function,
        FunctionFileResource,
        LambdaFunctionDefinition,
        SqlFunctionDefinition,
    )
    from ledger.model.names import Identifier
    from ledger.model.schema import Schema, ViewSchema
    from ledger.model.types import DataField
    from ledger.table import Table
    from ledger.table_at import TableAt
    from ledger.table_branch import TableBranch

# Not `open`: `from ledger import *` must not hide the builtin. It is `ledger.open(url)`.
__all__ = [
    "AddColumn",
    "AddPartitionField",
    "AlreadyExistsError",
    "ColumnExistsError",
    "ColumnNotFoundError",
    "CommitConflictError",
    "CommitUnknownError",
    "DamagedLogError",
    "DataField",
    "DropColumn",
    "DropPrimaryKey",
    "FileChange",
    "FileFunctionDefinition",
    "FormatError",
    "Function",
    "FunctionFileResource",
    "Identifier",
    "InvalidChangeError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidTypeError",
    "LambdaFunctionDefinition",
    "Ledger",
    "LedgerError",
    "MissingDependencyError",
    "Move",
    "NotFoundError",
    "RemoveOption",
    "RemovePartitionField",
    "RenameColumn",
    "RenamePartitionField",
    "ReplaceSortOrder",
    "Schema",
    "SchemaChange",
    "SetIdentifierFields",
    "SetOption",
    "SnapshotPlan",
    "SortColumn",
    "SqlFunctionDefinition",
    "StoreError",
    "Table",
    "TableAt",
    "TableBranch",
    "TableDroppedError",
    "TooLargeError",
    "UndropColumn",
    "UnsupportedError",
    "UpdateColumnComment",
    "UpdateColumnDefaultValue",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "UpdatePartitionSpec",
    "UpgradeRequiredError",
    "ViewSchema",
    "evolve",
    "schema_change_from_json",
    "schema_change_to_json",
    "schema_from_json",
    "schema_of_files",
]

# Imported on first use, so that `import ledger` is fast.
_HOMES = {
    "ledger.ledger": (
        "Ledger",
        "open",
    ),
    "ledger.events.schema": (
        "AddColumn",
        "AddPartitionField",
        "DropColumn",
        "DropPrimaryKey",
        "Move",
        "RemoveOption",
        "RemovePartitionField",
        "RenameColumn",
        "RenamePartitionField",
        "ReplaceSortOrder",
        "SchemaChange",
        "SetIdentifierFields",
        "SetOption",
        "SortColumn",
        "UndropColumn",
        "UpdateColumnComment",
        "UpdateColumnDefaultValue",
        "UpdateColumnNullability",
        "UpdateColumnPosition",
        "UpdateColumnType",
        "UpdateComment",
        "UpdatePartitionSpec",
    ),
    "ledger.decide.change_json": (
        "schema_change_from_json",
        "schema_change_to_json",
    ),
    "ledger.decide.schema_batch": ("evolve",),
    "ledger.decide.schema_json": ("schema_from_json",),
    "ledger.model.errors": (
        "AlreadyExistsError",
        "ColumnExistsError",
        "ColumnNotFoundError",
        "CommitConflictError",
        "CommitUnknownError",
        "DamagedLogError",
        "FormatError",
        "InvalidChangeError",
        "InvalidInputError",
        "InvalidNameError",
        "InvalidTypeError",
        "LedgerError",
        "MissingDependencyError",
        "NotFoundError",
        "StoreError",
        "TableDroppedError",
        "TooLargeError",
        "UnsupportedError",
        "UpgradeRequiredError",
    ),
    "ledger.files.parquet_schema": ("schema_of_files",),
    "ledger.model.file_change": ("FileChange",),
    "ledger.model.functions": (
        "FileFunctionDefinition",
        "Function",
        "FunctionFileResource",
        "LambdaFunctionDefinition",
        "SqlFunctionDefinition",
    ),
    "ledger.model.names": ("Identifier",),
    "ledger.model.schema": ("Schema", "ViewSchema"),
    "ledger.model.types": ("DataField",),
    "ledger.files.snapshot_plan": ("SnapshotPlan",),
    "ledger.table": ("Table",),
    "ledger.table_at": ("TableAt",),
    "ledger.table_branch": ("TableBranch",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def _load_submodule(name: str) -> Any:
    """Return a module of this package: `ledger.transforms` needs no import of its own."""
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("lakeledger")
        home = _HOME_OF.get(name)
        if home is None:
            return _load_submodule(name)
        globals()[name] = value = getattr(import_module(home), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOME_OF})
