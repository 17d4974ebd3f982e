"""The page of the API, `ledger/docs/api.md`, made from docstrings and from the examples here.

`python -m tests.api_page` writes it anew. `tests/test_docs.py` runs each example, and holds that
the page misses no public name and no public member.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import MemberDescriptorType
from typing import Any

import ledger
from ledger import LedgerError
from ledger.events.commit import Record
from tests.example_names import write_delta_log, write_two_rows

PAGE = Path(__file__).parents[1] / "ledger" / "docs" / "api.md"

BEGINNING = """\
# The API

All of it comes with `import ledger`. `python -m pydoc ledger.Table`, or `help(ledger.Table)`, \
shows what a name takes, returns and raises, with an example that shows what comes back. This page \
has the first line of each, and one line that runs; `python -m tests.api_page` writes it anew.

In the examples, `lake` is a ledger in memory with the database `shop`, and `orders` its table \
`shop.orders`: columns `id`, `addr` and `pieces`, a file of two rows, the tag `v1`, the branch \
`audit`. `file` is a `FileChange` and `new_file` the path of a Parquet file, neither in a table \
yet. `local` is a ledger in a folder, `visits` a table of it whose rows can be read, and `served` \
a table that declares Iceberg alone. `theirs` is a Delta table in the folder `web`, `mirrors` a \
ledger that imported it, and `erasable` a ledger that can erase.

What takes `**options` or `**commit` is a commit: `author=`, `message=`, `commit_id=`, \
`asked=`, `expect_version=`, `effective_time=`, `properties=`. What takes `**wanted` is narrowed \
as `Table.entries` is.
"""

PUBLIC_NAMES = sorted([*ledger.__all__, "open"])
"""Star imports leave `open` out, so that they hide no builtin."""

PUBLIC_CLASSES = (ledger.Ledger, ledger.Table, ledger.TableAt, ledger.TableBranch)


Row = tuple[str, str, str]
"""A name as it is called, what it is, and an example."""


def page() -> str:
    """Return the page as it has to be."""
    public = {name: getattr(ledger, name) for name in PUBLIC_NAMES}
    changes = {name: each for name, each in public.items() if _is_a(each, Record)}
    errors = {name: each for name, each in public.items() if _is_a(each, LedgerError)}
    handles = {each.__name__: each for each in PUBLIC_CLASSES}
    others = {
        name: each
        for name, each in public.items()
        if not {name} & (changes.keys() | errors.keys() | handles.keys())
    }
    parts = [
        BEGINNING,
        _table("What you begin with, and values", _plain(others)),
        *(_of_handle(name, each) for name, each in handles.items()),
        _table("Changes, for `alter` and `plan`", _plain(changes)),
        _table("Errors", _plain(errors)),
    ]
    return "\n".join(parts)


def _is_a(value: object, kind: type) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


def _of_handle(name: str, handle: type) -> str:
    members = {each: value for each, value in vars(handle).items() if not each.startswith("_")}
    said = {
        each: (f"{each}{_taken(value)}", _first(value))
        for each, value in members.items()
        if not isinstance(value, MemberDescriptorType)
    }
    said |= {each: (each, what) for each, what in _attributes(handle)}
    rows = [(*said[each], EXAMPLES[f"{name}.{each}"]) for each in sorted(said)]
    return _table(f"`{name}`: {_first(handle)}", [(name, "The class.", EXAMPLES[name]), *rows])


def _table(title: str, rows: Iterable[Row]) -> str:
    lines = (f"| `{name}` | {what} | `{example}` |" for name, what, example in rows)
    head = ["| name | what it is | example |", "|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *lines, ""])


def _plain(members: Mapping[str, Any]) -> Iterator[Row]:
    for name, value in members.items():
        what = _first(value) if inspect.getdoc(value) != _UNION else "Any change of a schema."
        yield name, what, EXAMPLES[name]


_UNION = inspect.getdoc(int | str)
_STARS: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def _taken(member: object) -> str:
    """Return what a method takes, without types; nothing for a property."""
    if not inspect.isfunction(member):
        return ""
    found, said = list(inspect.signature(member).parameters.values())[1:], []
    for number, each in enumerate(found):
        if each.kind is each.KEYWORD_ONLY and not any(
            before.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL} for before in found[:number]
        ):
            said.append("*")
        stars = _STARS.get(each.kind, "")
        said.append(f"{stars}{each.name}{'' if each.default is each.empty else '=...'}")
    return f"({', '.join(said)})"


def _attributes(handle: type) -> Iterator[tuple[str, str]]:
    """Yield what a class's docstring says of its attributes."""
    _, _, said = (inspect.getdoc(handle) or "").partition("Attributes:\n")
    for each in re.finditer(r"^    (\w+): (.*(?:\n {8}.*)*)", said, re.MULTILINE):
        yield each[1], " ".join(each[2].split())


def _first(value: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    said = inspect.getdoc(value) or ""
    return " ".join(said.split("\n\n", 1)[0].split()).replace("|", "\\|")


EXAMPLES: Mapping[str, str] = {
    "AddColumn": 'orders.alter([ledger.AddColumn(("zip",), "STRING")])',
    "AddPartitionField": 'ledger.AddPartitionField(("addr",))',
    "AlreadyExistsError": 'lake.create_database("shop")',
    "ColumnExistsError": 'orders.alter([ledger.AddColumn(("id",), "INT")])',
    "ColumnNotFoundError": 'orders.alter([ledger.DropColumn(("city",))])',
    "CommitConflictError": 'orders.create_tag("v2", expect_version=0)',
    "CommitUnknownError": 'with suppress(ledger.CommitUnknownError): orders.create_tag("v2")',
    "DamagedLogError": 'with suppress(ledger.DamagedLogError): lake.table("shop.orders")',
    "DataField": 'ledger.DataField(id=7, name="zip", type=orders.schema.fields[1].type)',
    "DropColumn": 'orders.alter([ledger.DropColumn(("pieces",))])',
    "DropPrimaryKey": "orders.plan([ledger.DropPrimaryKey()]).refusals",
    "FileChange": 'ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)',
    "FileFunctionDefinition": 'ledger.FileFunctionDefinition(language="java", class_name="Area")',
    "FormatError": 'orders.alter([ledger.AddColumn(("v",), "VARIANT")])',
    "Function": 'ledger.Function(definitions={"trino": ledger.SqlFunctionDefinition("a * b")})',
    "FunctionFileResource": 'ledger.FunctionFileResource("jar", "/lib/area.jar")',
    "Identifier": 'ledger.Identifier.parse("shop.orders").database',
    "InvalidChangeError": "lake.correct_clock()",
    "InvalidInputError": 'orders.sql("SELECT 1")',
    "InvalidNameError": 'lake.create_database("a/b")',
    "InvalidTypeError": 'orders.alter([ledger.AddColumn(("zip",), "NUMBER")])',
    "LambdaFunctionDefinition": 'ledger.LambdaFunctionDefinition("(a, b) -> a * b", "java")',
    "Ledger": 'ledger.open("memory://mine").create_database("shop").version',
    "Ledger.alter_database": 'lake.alter_database("shop", updates={"owner": "bob"})',
    "Ledger.alter_function": 'lake.alter_function("shop.area", [ledger.UpdateComment("a * b")])',
    "Ledger.alter_view": 'lake.alter_view("shop.ids", [ledger.UpdateComment("all ids")])',
    "Ledger.close": "lake.close(timeout_s=10)",
    "Ledger.correct_clock": "lake.correct_clock(1_600_000_000_000)",
    "Ledger.create_database": 'lake.create_database("sales", {"owner": "ann"}, author="ann")',
    "Ledger.create_function": 'lake.create_function("shop.volume", ledger.Function())',
    "Ledger.create_table": 'lake.create_table("shop.visits", {"day": "DATE", "city": "STRING"})',
    "Ledger.create_tables": 'lake.create_tables({"shop.a": {"id": "INT"}})',
    "Ledger.create_view": 'lake.create_view("shop.all", ledger.ViewSchema((), "SELECT 1"))',
    "Ledger.databases": "lake.databases()",
    "Ledger.drop_database": 'lake.drop_database("empty")',
    "Ledger.drop_function": 'lake.drop_function("shop.area")',
    "Ledger.drop_table": 'lake.drop_table("shop.orders")',
    "Ledger.dropped_tables": "lake.dropped_tables()",
    "Ledger.undrop_table": '[lake.drop_table("shop.orders"), lake.undrop_table("shop.orders")]',
    "Ledger.drop_view": 'lake.drop_view("shop.ids")',
    "Ledger.entries": "next(lake.entries()).version",
    "Ledger.erase": 'erasable.erase(author="bob").values',
    "Ledger.events": "next(lake.events()).transactions[0].author",
    "Ledger.find_commit": 'lake.find_commit("monday")',
    "Ledger.find_everywhere": 'lake.find_everywhere("monday").entries',
    "Ledger.function": 'lake.function("shop.area").function.definitions',
    "Ledger.functions": 'lake.functions("shop")',
    "Ledger.history": 'next(iter(lake.history()))["kind"]',
    "Ledger.import_table": 'mirrors.import_table("web.visits", theirs, format_name="delta")',
    "Ledger.import_tables": 'lake.import_tables(web, format_name="delta")',
    "Ledger.init": "lake.init()",
    "Ledger.is_begun": "lake.is_begun",
    "Ledger.is_erasable": "lake.is_erasable",
    "Ledger.ledger_id": "lake.ledger_id",
    "Ledger.plan_clock_correction": "lake.plan_clock_correction(1_600_000_000_000)",
    "Ledger.plan_erasure": 'lake.plan_erasure(author="ann").remaining',
    "Ledger.plan_import": 'lake.plan_import("web.visits", theirs, format_name="delta")',
    "Ledger.plan_promotion": 'mirrors.plan_promotion("web.visits", source=theirs).files',
    "Ledger.promote": 'mirrors.promote("web.visits", source=theirs).files',
    "Ledger.query": 'lake.query("SELECT author, count(*) AS changes FROM log GROUP BY ALL")',
    "Ledger.record_alias": "local.record_alias()",
    "Ledger.record_copy": "lake.record_copy()",
    "Ledger.record_move": "lake.record_move()",
    "Ledger.rename_table": 'lake.rename_table("shop.orders", "shop.sales")',
    "Ledger.rename_view": 'lake.rename_view("shop.ids", "shop.keys")',
    "Ledger.report": "lake.report()",
    "Ledger.state": "lake.state.version",
    "Ledger.table": 'lake.table("shop.orders")',
    "Ledger.tables": 'lake.tables("shop")',
    "Ledger.tables_to_import": 'lake.tables_to_import(web, format_name="delta")',
    "Ledger.upgrade": 'ledger.open("memory://fresh").upgrade(erasable=True)',
    "Ledger.url": "lake.url",
    "Ledger.view": 'lake.view("shop.ids").schema.query',
    "Ledger.views": 'lake.views("shop")',
    "Ledger.inspect_location": "lake.inspect_location().verdict",
    "LedgerError": 'with suppress(ledger.LedgerError): lake.table("shop.gone")',
    "MissingDependencyError": 'orders.project("hudi")',
    "Move": 'ledger.AddColumn(("zip",), "STRING", move=ledger.Move("zip", "AFTER", "id"))',
    "NotFoundError": 'lake.table("shop.gone")',
    "RemoveOption": 'orders.alter([ledger.RemoveOption("owner")])',
    "RemovePartitionField": 'ledger.UpdatePartitionSpec((ledger.RemovePartitionField("addr"),))',
    "RenameColumn": 'orders.alter([ledger.RenameColumn(("addr",), "address")])',
    "RenamePartitionField": 'ledger.RenamePartitionField("addr", "city")',
    "ReplaceSortOrder": 'orders.alter([ledger.ReplaceSortOrder((ledger.SortColumn(("id",)),))])',
    "Schema": 'ledger.Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])',
    "SchemaChange": 'isinstance(ledger.DropColumn(("pieces",)), ledger.SchemaChange)',
    "SetIdentifierFields": 'ledger.SetIdentifierFields((("id",),))',
    "SetOption": 'orders.alter([ledger.SetOption("owner", "ann")])',
    "SnapshotPlan": 'ledger.SnapshotPlan("OVERWRITE", delete=("a.parquet",))',
    "SortColumn": 'ledger.SortColumn(("id",))',
    "SqlFunctionDefinition": 'ledger.SqlFunctionDefinition("a * b")',
    "StoreError": 'with suppress(ledger.StoreError): lake.create_database("sales")',
    "Table": 'lake.table("shop.orders").schema.names',
    "Table.add_files": "orders.add_files(new_file)",
    "Table.alter": 'orders.alter([ledger.RenameColumn(("addr",), "city")], author="bob")',
    "Table.append": 'orders.append([file], message="the second day")',
    "Table.at": 'orders.at(tag="v1").schema.names',
    "Table.blame": 'orders.blame("pieces")',
    "Table.branch": 'orders.branch("audit").at().totals',
    "Table.column_id": 'orders.column_id("addr")',
    "Table.commit_snapshot": 'orders.commit_snapshot(ledger.SnapshotPlan("APPEND", (file,)))',
    "Table.correct_clock": "orders.correct_clock(1_600_000_000_000)",
    "Table.create_branch": 'orders.create_branch("draft", tag="v1")',
    "Table.create_tag": 'orders.create_tag("week-1", time_retained_millis=86_400_000)',
    "Table.data_files": "orders.data_files([new_file])",
    "Table.delete_files": 'orders.delete_files("a.parquet")',
    "Table.delete_tag": 'orders.delete_tag("v1")',
    "Table.diff": "orders.diff(0).to_json()",
    "Table.entries": 'next(orders.entries(kinds=["createTag"])).transaction.author',
    "Table.events": "next(orders.events(1)).version",
    "Table.expire_snapshots": "orders.expire_snapshots(before=1)",
    "Table.find_commit": 'orders.find_commit("monday")',
    "Table.freshness": "orders.freshness()",
    "Table.head": "visits.head(1)",
    "Table.history": 'next(iter(orders.history()))["kind"]',
    "Table.identifier": "str(orders.identifier)",
    "Table.location": "orders.location",
    "Table.new_files": "orders.new_files(new_file)",
    "Table.overwrite": "orders.overwrite([file])",
    "Table.plan": 'orders.plan([ledger.AddColumn(("zip",), "STRING")]).verdicts',
    "Table.plan_clock_correction": "orders.plan_clock_correction(1_600_000_000_000)",
    "Table.plan_restore": "orders.plan_restore(0).changes",
    "Table.plan_serving": 'served.plan_serving("iceberg")',
    "Table.plan_stop_serving": "served.plan_stop_serving()",
    "Table.plan_undo": "orders.plan_undo(3).changes",
    "Table.project": 'orders.project("iceberg")',
    "Table.replace_sort_order": 'orders.replace_sort_order().asc("id").commit()',
    "Table.replace_tag": 'orders.replace_tag("v1", snapshot=1)',
    "Table.replay": "orders.replay(print, first=2)",
    "Table.report": "orders.report()",
    "Table.restore": 'orders.restore(orders.at(tag="v1"))',
    "Table.rollback": 'orders.rollback(tag="v1")',
    "Table.schema": "orders.schema.names",
    "Table.schemas": "next(orders.schemas()).names",
    "Table.set_partition_statistics": 'orders.set_partition_statistics(1, "1.parquet", 700)',
    "Table.set_statistics": 'orders.set_statistics(1, "metadata/1.stats", 700, 90, [])',
    "Table.snapshots": 'next(iter(orders.snapshots()))["rows"]',
    "Table.sql": 'orders.sql("ALTER TABLE shop.orders ADD COLUMN zip STRING")',
    "Table.start_serving": 'served.start_serving("iceberg")',
    "Table.state": "orders.state.version",
    "Table.stop_serving": "served.stop_serving()",
    "Table.to_arrow": 'visits.to_arrow("id > 0", ["id"])',
    "Table.to_pandas": "visits.to_pandas()",
    "Table.to_polars": "visits.to_polars()",
    "Table.undo": "orders.undo(3)",
    "Table.update_schema": 'orders.update_schema().rename_column("addr", "address").commit()',
    "Table.update_spec": 'orders.update_spec().add_field("addr").commit()',
    "TableAt": 'orders.at(tag="v1").totals.record_count',
    "TableAt.files": "orders.at().files[0].path",
    "TableAt.head": "visits.at().head(1)",
    "TableAt.named": 'orders.at(tag="v1").named',
    "TableAt.options": "orders.at().options",
    "TableAt.plan": 'orders.at().plan("id > 7").files',
    "TableAt.query": 'orders.at(tag="v1").query("SELECT path, author FROM columns")',
    "TableAt.scan": 'visits.at().scan("id > 1").to_arrow()',
    "TableAt.schema": "orders.at(snapshot=1).schema.names",
    "TableAt.snapshot": "orders.at().snapshot.commit_kind",
    "TableAt.state": "orders.at(version=1).state.tags",
    "TableAt.tags": "sorted(orders.at().tags)",
    "TableAt.to_arrow": 'visits.at().to_arrow(columns=["id"])',
    "TableAt.to_arrow_batch_reader": "visits.at().to_arrow_batch_reader().read_all()",
    "TableAt.to_duckdb": "visits.at().to_duckdb().sql('FROM visits').fetchall()",
    "TableAt.to_pandas": "visits.at().to_pandas()",
    "TableAt.to_polars": "visits.at().to_polars()",
    "TableAt.totals": "orders.at().totals.record_count",
    "TableAt.version": 'orders.at(tag="v1").version',
    "TableBranch": 'orders.branch("audit").state.head_id',
    "TableBranch.add_files": "audit.add_files(new_file)",
    "TableBranch.append": "audit.append([file])",
    "TableBranch.at": "audit.at().totals.record_count",
    "TableBranch.commit_snapshot": 'audit.commit_snapshot(ledger.SnapshotPlan("APPEND", (file,)))',
    "TableBranch.create": 'orders.branch("draft").create(tag="v1")',
    "TableBranch.delete": "audit.delete()",
    "TableBranch.delete_files": 'audit.delete_files("a.parquet")',
    "TableBranch.expire_snapshots": "audit.expire_snapshots(before=1_000_000_000_001)",
    "TableBranch.fast_forward": "audit.fast_forward()",
    "TableBranch.name": "audit.name",
    "TableBranch.overwrite": "audit.overwrite([file])",
    "TableBranch.reset": 'audit.reset(tag="v1")',
    "TableBranch.rollback": "audit.rollback(snapshot=1)",
    "TableBranch.state": "audit.state.head_id",
    "TableDroppedError": '[orders, lake.drop_table("shop.orders")] and orders.create_tag("v2")',
    "TooLargeError": "with suppress(ledger.TooLargeError): orders.add_files(new_file)",
    "UndropColumn": 'orders.alter([ledger.UndropColumn(("gone",))])',
    "UnsupportedError": 'orders.project("delta")',
    "UpdateColumnComment": 'orders.alter([ledger.UpdateColumnComment(("addr",), "where to")])',
    "UpdateColumnDefaultValue": 'orders.alter([ledger.UpdateColumnDefaultValue(("addr",), "a")])',
    "UpdateColumnNullability": 'orders.alter([ledger.UpdateColumnNullability(("id",), True)])',
    "UpdateColumnPosition": 'ledger.UpdateColumnPosition(ledger.Move("addr", "FIRST"))',
    "UpdateColumnType": 'orders.alter([ledger.UpdateColumnType(("pieces",), "BIGINT")])',
    "UpdateComment": 'orders.alter([ledger.UpdateComment("what was sold")])',
    "UpdatePartitionSpec": 'ledger.UpdatePartitionSpec((ledger.AddPartitionField(("addr",)),))',
    "UpgradeRequiredError": "with suppress(ledger.UpgradeRequiredError): lake.state",
    "ViewSchema": 'ledger.ViewSchema(orders.schema.fields, "SELECT * FROM orders")',
    "evolve": 'ledger.evolve(orders.schema, [ledger.DropColumn(("pieces",))]).names',
    "open": 'ledger.open("memory://mine", author="ann")',
    "schema_change_from_json": 'ledger.schema_change_from_json({"type": "dropPrimaryKey"})',
    "schema_change_to_json": "ledger.schema_change_to_json(ledger.DropPrimaryKey())",
    "schema_from_json": 'ledger.schema_from_json({"fields": [], "options": {"owner": "ann"}})',
    "schema_of_files": "ledger.schema_of_files([new_file]).names",
}
"""One line that runs for each public name, and for each public member of a class."""


class ExampleNames(dict[str, Any]):
    """Names that examples use, each made when it is first looked up.

    Args:
        folder: An empty folder for files.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(ledger=ledger, suppress=suppress, print=print)
        self._folder = folder

    def __missing__(self, name: str) -> Any:
        makers: Mapping[str, Callable[[], Any]] = {
            "lake": self._lake,
            "orders": lambda: self["lake"].table("shop.orders"),
            "audit": lambda: self["orders"].branch("audit"),
            "file": lambda: _file("b.parquet"),
            "new_file": self._new_file,
            "local": self._local,
            "visits": self._visits,
            "theirs": self._theirs,
            "web": lambda: str(Path(self["theirs"]).parent),
            "mirrors": self._mirrors,
            "served": self._served,
            "erasable": self._erasable,
        }
        if name not in makers:
            raise KeyError(name)
        self[name] = made = makers[name]()
        return made

    def _opened(self, url: str) -> ledger.Ledger:
        # Commits of one millisecond would have no order between streams.
        clock = count(1_700_000_000_000, 1000)
        return ledger.open(url, author="ann", clock=lambda: next(clock))

    def _lake(self) -> ledger.Ledger:
        lake = self._opened(f"memory://api-{next(_numbers)}")
        lake.create_database("shop")
        orders = lake.create_table("shop.orders", COLUMNS)
        orders.append([_file("a.parquet")])
        orders.create_tag("v1")
        orders.alter([ledger.AddColumn(("pieces",), "INT")])
        orders.alter([ledger.AddColumn(("gone",), "INT")])
        orders.alter([ledger.DropColumn(("gone",))])
        orders.create_branch("audit")
        orders.branch("audit").append([_file("audit.parquet")])
        lake.create_database("empty")
        lake.create_view("shop.ids", ledger.ViewSchema(orders.schema.fields, "SELECT id FROM t"))
        lake.create_function("shop.area", ledger.Function())
        return lake

    def _new_file(self) -> str:
        write_two_rows(self._folder / "b.parquet")
        return str(self._folder / "b.parquet")

    def _local(self) -> ledger.Ledger:
        local = self._opened(self._folder.as_uri())
        local.create_database("shop")
        return local

    def _visits(self) -> ledger.Table:
        local: ledger.Ledger = self["local"]
        visits = local.create_table("shop.visits", {"id": "BIGINT", "addr": "STRING"})
        visits.add_files(self["new_file"])
        return visits

    def _theirs(self) -> str:
        write_delta_log(self._folder / "web" / "visits")
        return str(self._folder / "web" / "visits")

    def _mirrors(self) -> ledger.Ledger:
        mirrors = self._opened(f"memory://api-{next(_numbers)}")
        mirrors.import_table("web.visits", self["theirs"], format_name="delta")
        return mirrors

    def _served(self) -> ledger.Table:
        options = {"ledger.formats": "iceberg"}
        schema = ledger.Schema.of(COLUMNS, options=options)
        lake: ledger.Ledger = self["lake"]
        return lake.create_table("shop.served", schema)

    def _erasable(self) -> ledger.Ledger:
        erasable = self._opened(f"memory://api-{next(_numbers)}")
        erasable.init(erasable=True)
        erasable.create_database("shop", author="bob")
        return erasable


_numbers = count()
COLUMNS = {"id": "BIGINT NOT NULL", "addr": "STRING"}


def _file(path: str) -> ledger.FileChange:
    return ledger.FileChange(path=path, record_count=2, file_size_in_bytes=90)


if __name__ == "__main__":
    PAGE.write_text(page())
