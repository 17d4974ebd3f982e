"""Imports at startup: counted in modules, since times depend on the machine."""

from __future__ import annotations

import importlib
from inspect import get_annotations
from pathlib import Path
from types import FunctionType
from typing import get_args

import pytest
from msgspec import Struct

import ledger
from ledger.events import CatalogEvent, TableEvent
from ledger.events.commit import Commit, Transaction
from tests.programs import run

ROOT = Path(__file__).parents[1]

HEAVY = {
    *("asyncio", "cattrs", "email", "fastavro", "fsspec", "pandas", "pyarrow", "pyspark"),
    *("sqlglot", "structlog"),
}
COMMAND_LINE = {"cyclopts", "rich"}
READING_A_LINE = {"cyclopts", "docstring_parser", "msgspec", "attrs"}
PRINTING_MARKDOWN = {"markdown_it", "pygments"}
DECIDING = {
    *(
        "ledger.opening.creation",
        "ledger.decide.table_creation",
        "ledger.decide.schema_batch",
    ),
    *("ledger.formats", "ledger.decide.table"),
    *("ledger.decide.schema_rules",),
    *(
        "ledger.files.register",
        "ledger.plan",
        "ledger.planning.plan",
        "ledger.sql.statement",
    ),
}
METADATA = {"importlib.metadata"}


def loaded_by(program: str, *argv: object) -> set[str]:
    """Return the modules that a program leaves imported in a Python of its own."""
    script = f"{program}\nimport sys; print(*sys.modules, file=sys.stderr)"
    ran = run("-c", script, *argv)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())


def command(*argv: object) -> set[str]:
    program = "import sys; from ledger.cli import main; assert main(sys.argv[1:]) == 0"
    return loaded_by(program, *argv)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start") / "lake"
    opened = ledger.open(str(folder), author="ada")
    opened.create_database("shop")
    orders = opened.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
    orders.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    return folder


def test_to_import_the_ledger_imports_its_stores_and_no_other_room() -> None:
    loaded = loaded_by("import ledger")

    assert not loaded & (HEAVY | COMMAND_LINE | METADATA | {"attr", "inspect", "msgspec"})
    rooms = {".".join(each.split(".")[:2]) for each in loaded if each.startswith("ledger.")}
    assert rooms == {"ledger.stores", "ledger.model"}


def test_to_read_a_table_imports_neither_what_decides_nor_what_is_heavy(lake: Path) -> None:
    reading = (
        "import sys, ledger; at = ledger.open(sys.argv[1]).table('shop.orders').at(); "
        "assert at.totals.record_count == 1 and at.schema.names == ('id',)"
    )
    assert not loaded_by(reading, lake) & (HEAVY | COMMAND_LINE | METADATA | DECIDING)


def test_a_commit_imports_nothing_that_is_heavy(tmp_path: Path) -> None:
    committing = (
        "import sys, ledger; lake = ledger.open(sys.argv[1], author='ada'); "
        "lake.create_database('shop'); "
        "table = lake.create_table('shop.orders', ledger.Schema.of({'id': 'BIGINT'})); "
        "table.alter([ledger.SetOption('team.a', 'b')]); "
        "table.append([ledger.FileChange(path='b.parquet', record_count=1, file_size_in_bytes=9)])"
    )
    # Formats are found by entry points, whose reader parses mail.
    assert not loaded_by(committing, tmp_path) & (HEAVY | COMMAND_LINE) - {"email"}


def test_the_version_is_printed_without_any_library() -> None:
    assert not command("--version") & (HEAVY | COMMAND_LINE | {"msgspec"}) - {"email"}


def test_the_help_that_lists_the_commands_imports_none_of_them() -> None:
    loaded = command("--help")

    assert not loaded & (HEAVY | PRINTING_MARKDOWN | DECIDING | READING_A_LINE) - {"email"}
    ours = {each for each in loaded if each.startswith(("ledger.cli.commands.", "ledger.table"))}
    assert not ours
    assert not {
        each
        for each in loaded
        if each.startswith(("projections.", "ledger.state", "ledger.decide"))
    } - {"projections.commands"}


@pytest.mark.parametrize("words", [["show"], ["log"], ["log", "--output", "json"]])
def test_a_command_that_reads_imports_itself_alone(lake: Path, words: list[str]) -> None:
    name, *rest = words
    loaded = command(name, "shop.orders", *rest, "--ledger", lake)

    assert not loaded & (HEAVY | PRINTING_MARKDOWN | DECIDING | METADATA)
    assert not loaded & {"socket", "cyclopts.validators"}
    if "json" not in rest:
        assert not loaded & {"ledger.audit.blame", "ledger.audit.column_history"}
    found = {each for each in loaded if each.startswith("ledger.cli.commands.")}
    assert found == {f"ledger.cli.commands.{name}"}
    if "json" in rest:
        assert "rich.table" not in loaded


@pytest.mark.parametrize("words", [["--help"], ["show", "shop.orders"], ["log", "shop.orders"]])
def test_nothing_is_looked_through_for_garbage_from_a_command_s_start_to_its_end(
    lake: Path, words: list[str]
) -> None:
    program = f"""
import atexit, gc, sys
from ledger.cli import main
looked = []
gc.callbacks.append(lambda phase, about: looked.append(phase))
atexit.register(lambda: print(len(looked), len(gc.get_objects()), file=sys.stderr))
sys.argv[1:] = {[*words, "--ledger", str(lake)]!r}
sys.exit(main())
"""
    ran = run("-c", program)
    assert ran.returncode == 0, ran.stderr
    looked, left = map(int, ran.stderr.split())

    assert looked == 0
    assert left < 1_000


def test_every_public_name_is_found_and_listed() -> None:
    for name in [*ledger.__all__, "open"]:
        public = getattr(ledger, name)
        # A union as `SchemaChange` knows no name of its own, and is `Union` to Python 3.14.
        assert not isinstance(public, type | FunctionType) or public.__name__ == name
    assert {*ledger.__all__, "open"} <= set(dir(ledger))
    program = f"from ledger import {', '.join(ledger.__all__)}\nfrom ledger import *"
    assert "ledger.table" in loaded_by(program)


FIRST_NAMES = [
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
    "FormatError",
    "Identifier",
    "InvalidChangeError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidTypeError",
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
    "StoreError",
    "Table",
    "TableAt",
    "TableDroppedError",
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
    "open",
    "schema_change_from_json",
    "schema_change_to_json",
    "schema_from_json",
]


@pytest.mark.parametrize("formats", ["iceberg", "delta"])
def test_a_commit_imports_the_rules_of_the_formats_that_its_table_declares(formats: str) -> None:
    loaded = loaded_by(
        f"""
import ledger
lake = ledger.open("memory://rules")
lake.create_database("db")
options = {{"ledger.formats": "{formats}"}}
orders = lake.create_table("db.orders", ledger.Schema.of({{"id": "INT"}}, options=options))
orders.alter([ledger.AddColumn(("price",), "INT")])
"""
    )

    assert ("projections.delta.rules" in loaded) == (formats == "delta")


def test_every_name_that_was_public_once_is_public_still() -> None:
    assert set(FIRST_NAMES) <= {*ledger.__all__, "open"}
    loaded_by(f"from ledger import {', '.join(FIRST_NAMES)}")


def test_a_room_is_reached_as_an_attribute() -> None:
    program = "import ledger; ledger.transforms.day; ledger.model.errors"
    assert "ledger.transforms" in loaded_by(program)


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Tabel'"):
        importlib.import_module("ledger").Tabel  # noqa: B018 - it is looked up
    with pytest.raises(ImportError):
        importlib.import_module("ledger.tabel")


def test_no_process_compiles_texts_to_know_what_commits_may_hold() -> None:
    texts = [
        f"{each.__name__}.{name}"
        for kind in {Commit, Transaction, *get_args(TableEvent), *get_args(CatalogEvent)}
        for each in kind.__mro__
        if issubclass(each, Struct)
        for name, held in get_annotations(each).items()
        if isinstance(held, str)
    ]
    assert not texts
