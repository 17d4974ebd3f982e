"""Commands to interrupt: what each starts with, its line, and what it must have left in the end."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
from attrs import frozen
from pyarrow import parquet
from pyiceberg.types import LongType

import ledger
from ledger import AddColumn, DropColumn, FileChange, Ledger, Schema, SetOption, Table
from ledger.cli import main
from ledger.relocation.exporting import export
from ledger.state.table import TableState
from ledger.table_handle import handle_of
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.readers.engines import duckdb_connection
from tests.readers.lakehouse import add_rows, write_rows

Outcome = dict[str, Any]

OUTPUT: Final = "command.out"
"""The file next to a run's folder with what the last run of the command wrote to stdout."""

CHANGING: Final = ("create", "replace", "delete")
READING: Final = ("read", "read_many", "exists", "confirm", "keys")


def nothing(_home: Path) -> None:
    """Look at nothing between an interruption and the retry."""


@frozen
class Case:
    """A command to interrupt.

    Attributes:
        name: The case's.
        line: The command line; relative paths are below the run's folder.
        prepare: Makes what the command starts with, in a folder.
        outcome: Returns what the command has left, without times and fresh ids; raises an
            AssertionError where it is not well.
        is_done: Whether the command's first commit is in the log.
        admitted: What an error says once that commit is there.
        between: Checks what an interrupted run has left, before the retry.
        calls: The methods of a store at which it is interrupted.
    """

    name: str
    line: tuple[str, ...]
    prepare: Callable[[Path], None]
    outcome: Callable[[Path], Outcome]
    is_done: Callable[[Path], bool]
    admitted: str = "it is not done"
    between: Callable[[Path], None] = nothing
    calls: tuple[str, ...] = CHANGING


_FRESH: Final = (
    (re.compile(r"[0-9a-f]{64}"), "DIGEST"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b1[0-9]{12,18}\b"), "TIME"),
)


def masked(text: str) -> str:
    """Return a text without digests, ids and times.

    Example:
        >>> masked('{"at":1700000000000}')
        '{"at":TIME}'
    """
    for pattern, word in _FRESH:
        text = pattern.sub(word, text)
    return text


def command(*line: object) -> tuple[int, str, str]:
    """Run a command line; return its exit code, and what it wrote to stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(each) for each in line])
    return code, out.getvalue(), err.getvalue()


def opened(root: Path) -> Ledger:
    return ledger.open(str(root), author="ada@prod")


def bodies_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files below a folder but drafts, by their path."""
    for each in sorted(folder.rglob("*")):
        if each.is_file() and not each.is_symlink() and not each.name.startswith("."):
            yield each.relative_to(folder).as_posix(), each.read_bytes()


def events(root: Path) -> Outcome:
    """Return the events of each stream of a ledger, in their order."""
    found: Outcome = {}
    for path, body in bodies_below(root):
        stream, is_log, _ = path.rpartition("_ledger/log/")
        if is_log:
            said = found.setdefault(f"events of {stream or 'the catalog'}", [])
            for each in json.loads(body)["transactions"]:
                said += [masked(json.dumps(event)) for event in each.get("events", ())]
    return found


def projected(root: Path) -> Outcome:
    """Return the files of a ledger's tables outside of their logs."""
    return {
        masked(path): masked(body.decode()) if _is_text(body) else "bytes"
        for path, body in bodies_below(root)
        if "_ledger/" not in path and not path.endswith(".parquet")
    }


def _is_text(body: bytes) -> bool:
    try:
        return body.decode().isprintable() or body[:1] == b"{"
    except UnicodeDecodeError:
        return False


def verified(
    root: Path, *, allowed: frozenset[str] = frozenset({"absent", "inexpressible"})
) -> None:
    """Check that `verify` finds nothing but some kinds.

    Raises:
        AssertionError: It does.
    """
    code, out, err = command("verify", "--ledger", root, "--output", "json")
    found = json.loads(out)["findings"] if out else []
    other = [each for each in found if each["kind"] not in allowed]
    assert not other, other
    assert code == 0, err


def ledger_outcome(root: Path) -> Outcome:
    """Return what is in a sound ledger."""
    verified(root)
    return events(root) | projected(root)


# Moves


def life(table: Table) -> None:
    """Give a table some snapshots, schemas and a tag."""
    for number in range(4):
        add_rows(table, f"data/{number}.parquet", [{"id": number}, {"id": number + 10}])
        if number == 1:
            table.alter([AddColumn(("name",), "STRING")])
            table.create_tag("t")
    table.delete_files(["data/1.parquet"])
    table.alter([DropColumn(("name",)), SetOption("k", "v")])


MOVED: Final[Mapping[str, str]] = {
    "all": "paimon,iceberg,delta",
    "undeclared": "paimon,iceberg",
}


def lake_at(root: Path) -> None:
    """Make a ledger with projected tables; one lacks commits, one declares a format no more."""
    lake = opened(root)
    lake.create_database("shop")
    for name, formats in MOVED.items():
        options = {"ledger.formats": formats, "bucket": "-1"}
        table = lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}, options=options))
        add_rows(table, "data/first.parquet", [{"id": 100}])
        for each in formats.split(","):
            table.project(each)
        life(table)
        for each in formats.split(","):
            table.project(each)
    lake.table("shop.all").alter([SetOption("late", "1")])
    lake.table("shop.undeclared").alter([SetOption("ledger.formats", "paimon")])


def renamed_away(home: Path) -> None:
    """Make a ledger and move its folder."""
    lake_at(home / "old")
    (home / "old").rename(home / "lake")


def copied_away(home: Path) -> None:
    """Make a ledger and copy its folder; a table outside of it stays the original's."""
    lake_at(home / "old")
    shutil.copytree(home / "old", home / "lake")


ROWS: Final = [{"id": n} for n in (0, 2, 3, 10, 12, 13, 100)]


def moved(home: Path) -> Outcome:
    """Check that nothing leads to the place where a ledger was, and that its readers read."""
    old = f"{home}/old"
    for path, text in texts(home / "lake"):
        assert old not in text, f"{path} names {old}"
    for name, formats in MOVED.items():
        for each in formats.split(","):
            assert rows(home / "lake/shop.db" / name, each) == ROWS, (name, each)
    return ledger_outcome(home / "lake")


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Yield what the projected files of a ledger say, and what is kept of them."""
    for path, body in bodies_below(root):
        if "_ledger/" in path and "/projections/" not in path and "/leaving/" not in path:
            continue
        if path.endswith(".parquet") and "_delta_log" not in path:
            continue
        yield path, _text(path, body)


def _text(path: str, body: bytes) -> str:
    if body.startswith(b"Obj\x01"):
        return str([*fastavro.reader(io.BytesIO(body))])
    if path.endswith(".parquet"):
        return str(parquet.read_table(io.BytesIO(body)).to_pylist())
    return body.decode(errors="replace")


def rows(folder: Path, format_name: str) -> list[dict[str, Any]]:
    """Return the rows that a format's own reader finds in a table's folder."""
    found = READERS[format_name](folder).to_pylist()
    return sorted(({"id": each["id"]} for each in found), key=lambda each: each["id"])


def _by_pyiceberg(folder: Path) -> Any:
    from pyiceberg.table import StaticTable

    version = (folder / "metadata/version-hint.text").read_text()
    return (
        StaticTable.from_metadata(str(folder / f"metadata/v{version}.metadata.json"))
        .scan()
        .to_arrow()
    )


def _by_duckdb(folder: Path) -> Any:
    with duckdb_connection("delta") as connection:
        query = f"SELECT id FROM delta_scan('{folder}')"  # noqa: S608 - written here
        return connection.sql(query).to_arrow_table()


def _by_pypaimon(folder: Path) -> Any:
    from pypaimon import CatalogFactory

    catalog = CatalogFactory.create({"warehouse": str(folder.parents[1])})
    builder = catalog.get_table(f"shop.{folder.name}").new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


READERS: Final[Mapping[str, Callable[[Path], Any]]] = {
    "paimon": _by_pypaimon,
    "iceberg": _by_pyiceberg,
    "delta": _by_duckdb,
}


def has_event(root: str, kind: str) -> Callable[[Path], bool]:
    """Return what finds an event of a kind in a ledger's logs."""

    def find(home: Path) -> bool:
        said = json.dumps([*events(home / root).values()])
        return f'\\"type\\": \\"{kind}\\"' in said

    return find


def move_is_named(home: Path) -> None:
    """Check that `verify` names the command that ends a move, where files lead elsewhere."""
    old = f"{home}/old"
    left = [path for path, text in texts(home / "lake") if old in text]
    code, out, err = command("verify", "--ledger", home / "lake", "--output", "json")
    advice = [each["advice"] for each in json.loads(out)["findings"]]
    if left:
        assert any("lakeledger move" in each for each in advice), (left, advice, code, err)


# Imports, mirrors and promotions


def ledger_with_shop(home: Path) -> Ledger:
    lake = opened(home / "lake")
    lake.create_database("shop")
    return lake


def iceberg_source(folder: Path) -> Callable[[int], None]:
    """Make an Iceberg table; return what appends a row of an id."""
    folder.parent.mkdir(parents=True)
    table = created(folder)

    def append(number: int) -> None:
        appended(table, number, name=[f"n{number}"])

    append(1)
    append(2)
    with table.update_schema() as update:
        update.add_column("more", LongType())
    return append


def paimon_source(folder: Path) -> Callable[[int], None]:
    """Make a Paimon table; return what appends a few rows."""
    source = PaimonSource(folder.parents[1])
    source.append()
    source.add("more")
    source.append()
    return lambda _number: source.append()


def delta_source(folder: Path) -> Callable[[int], None]:
    """Make a Delta table; return what appends a row of an id."""
    from deltalake import write_deltalake

    def append(number: int) -> None:
        rows = pa.table({"id": pa.array([number], pa.int64()), "name": [f"n{number}"]})
        write_deltalake(str(folder), rows, mode="append")

    append(1)
    append(2)
    return append


@frozen
class Foreign:
    """A table of others that the commands bring in.

    Attributes:
        format_name: Its format.
        make: Makes it in a folder.
    """

    format_name: str
    make: Callable[[Path], Callable[[int], None]]

    @property
    def path(self) -> str:
        """Its path, below a run's folder."""
        return "source/s.db/t"

    @property
    def line(self) -> tuple[str, ...]:
        """The command line that brings it in."""
        return ("import", self.format_name, self.path, "shop.t", "--ledger", "lake")

    def new(self, home: Path) -> None:
        """Make the source, and a ledger without it."""
        ledger_with_shop(home)
        self.make(home / self.path)

    def changed(self, home: Path) -> None:
        """Make the source and a ledger that has its past, and change it."""
        lake = ledger_with_shop(home)
        append = self.make(home / self.path)
        lake.import_table("shop.t", str(home / self.path), format_name=self.format_name)
        for number in (3, 4):
            append(number)

    def outcome(self, home: Path) -> Outcome:
        """Return what is in the ledger, and how the source's folder looks."""
        source = sorted(masked(path) for path, _ in bodies_below(home / "source"))
        return ledger_outcome(home / "lake") | {"source": source}

    def cases(self) -> Iterator[Case]:
        """Yield the first import, a later one, and the promotion."""
        name = self.format_name
        started = has_event("lake", "createTable")
        yield Case(f"import_{name}", self.line, self.new, self.outcome, started, "")
        yield Case(f"mirror_{name}", self.line, self.changed, self.outcome, started, "")
        promotion = ("promote", "shop.t", "--ledger", "lake")
        done = has_event("lake", "promoteTable")
        admitted = "Complete it with: lakeledger promote shop.t"
        yield Case(f"promote_{name}", promotion, self.changed, self.outcome, done, admitted)
        if name == "delta":
            return
        serving = ("serve-table", "shop.t", "--ledger", "lake")
        if name == "iceberg":
            yield Case(f"serve_{name}", serving, self.changed, self.outcome, done, admitted)
        yield Case(
            f"serve_back_{name}",
            (*serving, "--back", "--commit-id", "17"),
            self.served,
            self.outcome,
            is_taken_back,
            "",
        )

    def served(self, home: Path) -> None:
        """Make a source and a ledger that promoted it for engines."""
        self.changed(home)
        protocol: Any = self.format_name
        opened(home / "lake").promote("shop.t", protocol=protocol)


def is_taken_back(home: Path) -> bool:
    """Return whether the ledger's table is the library's again."""
    return opened(home / "lake").table("shop.t").state.owner.kind == "ledger"


# Exports


def exportable(home: Path) -> None:
    """Make a ledger with two tables."""
    lake = ledger_with_shop(home)
    for name in ("one", "two"):
        table = lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}))
        files = [
            FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=100)
            for number in range(1_001)
        ]
        table.append(files)
        table.alter([AddColumn(("name",), "STRING")])


def exported(home: Path) -> Outcome:
    """Return the lines of an export."""
    lines = (home.parent / OUTPUT).read_bytes()
    return {"lines": lines.decode()} | ledger_outcome(home / "lake")


def part_is_refused(home: Path) -> None:
    """Check that an interrupted export is not taken for a whole one."""
    lines = (home.parent / OUTPUT).read_bytes()
    (home.parent / "part.jsonl").write_bytes(lines)
    shutil.rmtree(home.parent / "restored", ignore_errors=True)
    line = (
        "import",
        "ledger",
        home.parent / "part.jsonl",
        "--restore",
        "--ledger",
        home.parent / "restored",
    )
    is_whole = lines.endswith(b"}\n") and b'{"lakeledger":"end"' in lines
    assert (command(*line)[0] == 0) == is_whole


def with_lines(home: Path) -> None:
    """Make a ledger, and the lines of its export."""
    exportable(home)
    lines = home / "lines.jsonl"
    with lines.open("wb") as out:
        export(handle_of(opened(home / "lake")).setting, out, [])
    (home / "lake").rename(home / "original")


def is_begun(home: Path) -> bool:
    """Return whether an import of lines is complete: it writes the ledger's root last."""
    return opened(home / "lake").is_begun


# Branches, followed files and erasures


def with_branch(home: Path) -> None:
    """Make a table with a branch that is ahead of main, and files that follow it."""
    lake = ledger_with_shop(home)
    options = {"ledger.formats": "iceberg", "ledger.follow": "iceberg"}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    add_rows(table, "data/1.parquet", [{"id": 1}])
    branch = table.branch("audit")
    branch.create()
    path = write_rows(table, "data/2.parquet", [{"id": 2}])
    branch.add_files([str(path)])


def branched(home: Path) -> Outcome:
    """Return what is in a ledger once its files have followed, which no commit waits for."""
    code, _, err = command("follow", "--once", "--ledger", home / "lake")
    assert code == 0, err
    return ledger_outcome(home / "lake")


def branch_case(name: str, is_done: Callable[[TableState], bool], *line: str) -> Case:
    return Case(
        name,
        ("branch", "shop.t", *line, "--commit-id", "retried", "--ledger", "lake"),
        with_branch,
        branched,
        lambda home: is_done(opened(home / "lake").table("shop.t").state),
    )


def is_forwarded(state: TableState) -> bool:
    return state.last_snapshot_id == state.branches["audit"].head_id


def behind(home: Path) -> None:
    """Make tables whose files follow, and lack commits."""
    lake = ledger_with_shop(home)
    for name, formats in (("one", "paimon,iceberg,delta"), ("two", "iceberg")):
        options = {"ledger.formats": formats}
        table = lake.create_table(f"shop.{name}", Schema.of({"id": "BIGINT"}, options=options))
        add_rows(table, "data/first.parquet", [{"id": 100}])
        for each in formats.split(","):
            table.project(each)
        life(table)
        # Another client has said so, whose process ended before files went on.
        table.alter([SetOption("ledger.follow", formats)])


def followed(home: Path) -> Outcome:
    """Check that the readers of all formats find the newest rows."""
    for name, formats in (("one", "paimon,iceberg,delta"), ("two", "iceberg")):
        for each in formats.split(","):
            assert rows(home / "lake/shop.db" / name, each) == ROWS, (name, each)
    return ledger_outcome(home / "lake")


ANN: Final = "ann-0123456789@example.com"


def erasable(home: Path) -> None:
    """Make a ledger that can forget, and what Ann and Bob did in it."""
    lake = ledger.open(str(home / "lake"), author=ANN)
    lake.init(erasable=True)
    lake.create_database("shop")
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}))
    table.alter([SetOption("k", "1")], author="bob", message=f"for {ANN}")
    table.alter([SetOption("k", "2")], message="mine")
    table.alter([SetOption("k", "3")], author="bob", message="bob's")


def erased(home: Path) -> Outcome:
    """Check that Ann is nowhere, and Bob is everywhere as before."""
    named = [path for path, body in bodies_below(home / "lake") if ANN.encode() in body]
    assert not named, named
    history = command("log", "shop.t", "--ledger", home / "lake", "--output", "json")[1]
    assert "bob's" in history
    assert has_event("lake", "eraseValues")(home)
    # Each attempt at an erasure records what it was about to erase.
    return ledger_outcome(home / "lake") | {"log": masked(history), "events of the catalog": None}


def _cases() -> Iterator[Case]:
    yield Case(
        "move",
        ("move", "--ledger", "lake"),
        renamed_away,
        moved,
        has_event("lake", "moveLedger"),
        "Complete the move with: lakeledger move",
        move_is_named,
    )
    yield Case(
        "copy",
        ("move", "--copy", "--ledger", "lake"),
        copied_away,
        moved,
        has_event("lake", "copyLedger"),
        "Complete the move with: lakeledger move",
        move_is_named,
    )
    for foreign in (
        Foreign("iceberg", iceberg_source),
        Foreign("paimon", paimon_source),
        Foreign("delta", delta_source),
    ):
        yield from foreign.cases()
    yield Case(
        "export",
        ("export", "--ledger", "lake"),
        exportable,
        exported,
        lambda _home: False,
        between=part_is_refused,
        calls=READING,
    )
    yield Case(
        "import_ledger",
        ("import", "ledger", "lines.jsonl", "--restore", "--ledger", "lake"),
        with_lines,
        lambda home: ledger_outcome(home / "lake"),
        is_begun,
    )
    yield branch_case("branch", lambda state: "other" in state.branches, "other")
    yield branch_case("branch_forward", is_forwarded, "audit", "--fast-forward")
    yield branch_case(
        "branch_drop",
        lambda state: "audit" not in state.branches,
        *("audit", "--drop", "--yes"),
    )
    yield Case(
        "follow", ("follow", "--once", "--ledger", "lake"), behind, followed, lambda _: False
    )
    yield Case(
        "erase",
        (
            "erase",
            "--person",
            ANN,
            "--yes",
            "--author",
            "desk",
            "--commit-id",
            "17",
            "--ledger",
            "lake",
        ),
        erasable,
        erased,
        has_event("lake", "eraseValues"),
        "",
    )


CASES: Final = {each.name: each for each in _cases()}
