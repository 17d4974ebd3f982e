"""Every parameter of every public call, met with what it is not: a typed error that says which."""

from __future__ import annotations

import errno
import inspect
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast, get_args

import pytest

import ledger
from ledger import FileChange, Function, LedgerError, Schema, SchemaChange, transforms
from ledger.events import SpecChange, SpecUpdate
from ledger.model.messages import excerpt
from ledger.table_handle import handle_of


def nested(deep: int) -> Any:
    """A list in a list in a list."""
    found: Any = []
    for _ in range(deep):
        found = [found]
    return found


ABSURD: list[Any] = [10**5_000, -(10**5_000), "9" * 5_000, "\ud800", nested(100_000)]


class Unknown:
    """Of no type that anything takes; called the same in each process that collects tests."""

    def __repr__(self) -> str:
        return "<unknown>"


WRONG: list[Any] = [
    None,
    -4,
    10**30,
    3.5,
    True,
    "",
    "no such thing",
    "2013-01-31T12:00:00Z",
    b"bytes",
    Unknown(),
    [],
    [None],
    ["x"],
    [{}],
    {},
    {"a": 1},
    {3: None},
    {"x"},
    int,
    Path("x"),
    Schema.of({"id": "INT"}),
    *ABSURD,
    {"a": ABSURD[0]},
    {"a": ABSURD[-1]},
    {"\ud800": "a"},
    ["\ud800"],
]

_numbers = itertools.count()


def a_table() -> ledger.Table:
    lake = ledger.open(f"memory://arguments-{next(_numbers)}", author="ada")
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    table.append([a_file("a.parquet")])
    table.create_tag("v1")
    return table


def a_lake() -> ledger.Ledger:
    return ledger.open(handle_of(a_table()).ledger_url, author="ada")


def a_file(path: str) -> FileChange:
    day = ("2013-01-01",)
    return FileChange(path=path, partition=day, record_count=1, file_size_in_bytes=9)


VALID: dict[str, Any] = {
    "identifier": "shop.orders",
    "source": "id",
    "destination": "shop.other",
    "database": "shop",
    "name": "v2",
    "url": "memory://arguments",
    "new_name": "other",
    "schema": Schema.of({"id": "BIGINT"}),
    "function": Function(),
    "changes": [{"type": "dropPrimaryKey"}],
    "data": [a_file("b.parquet")],
    "paths": ["a.parquet"],
    "before": 1,
    "snapshot": 1,
    "path": "s.parquet",
    "file_size_in_bytes": 9,
    "footer_size_in_bytes": 3,
    "blobs": [],
    "statement": "ALTER TABLE shop.orders",
    "format_name": "paimon",
    "count": 3,
    "width": 3,
    "column": "id",
    "field": "day",
    "plan": ledger.SnapshotPlan("APPEND", (a_file("c.parquet"),)),
    "columns": {"id": "INT"},
    "tables": {"shop.new": {"id": "INT"}},
    "data_type": "INT",
    "reference": "day",
    "sensitive": True,
    "text": "shop.orders",
    "version": 1,
    "to": 1,
    "commit_id": "k",
    "asked": ["what"],
}

# Properties and what is of the inside, and calls that have no parameters of their own.
_OPTIONS: dict[str, Any] = {
    "author": "ada",
    "message": "why",
    "commit_id": "k",
    "asked": ["what"],
    "expect_version": 3,
    "properties": {},
    "effective_time": 5,
}


def _methods(kind: type) -> Iterator[str]:
    for name in sorted(dir(kind)):
        if not name.startswith("_") and inspect.isfunction(getattr(kind, name)):
            yield name


Call = Callable[..., Any]


def _of(make: Callable[[], Any], name: str) -> Callable[[], Call]:
    return lambda: cast(Call, getattr(make(), name))


CALLS: dict[str, tuple[Callable[[], Call], Call]] = {
    "open": (lambda: ledger.open, ledger.open),
    "evolve": (lambda: ledger.evolve, ledger.evolve),
    "Schema.of": (lambda: Schema.of, Schema.of),
    "Identifier.parse": (lambda: ledger.Identifier.parse, ledger.Identifier.parse),
}
_MAKERS: tuple[tuple[type, Callable[[], Any]], ...] = (
    (ledger.Ledger, a_lake),
    (ledger.Table, a_table),
    (ledger.TableAt, lambda: a_table().at()),
)
for _kind, _make in _MAKERS:
    for _name in _methods(_kind):
        CALLS[f"{_kind.__name__}.{_name}"] = _of(_make, _name), getattr(_kind, _name)
for _name in transforms.__all__:
    if _name[0].islower():
        CALLS[f"transforms.{_name}"] = _of(lambda: transforms, _name), getattr(transforms, _name)


def _fluent(begin: str, names: list[str]) -> None:
    for each in names:

        def make(each: str = each) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                update = getattr(a_table(), begin)()
                return getattr(update, each)(*args, **kwargs).apply()

            return call

        method = getattr(type(getattr(a_table(), begin)()), each)
        CALLS[f"{begin}.{each}"] = (make, method)


_fluent("update_spec", ["add_field", "remove_field", "rename_field"])
_fluent("replace_sort_order", ["asc", "desc"])
_fluent(
    "update_schema",
    [
        *("add_column", "delete_column", "rename_column", "update_column", "make_optional"),
        *("require", "move_first", "move_before", "move_after", "union_by_name", "case_sensitive"),
    ],
)


def _parameters() -> Iterator[tuple[str, str]]:
    for what, (_, function) in CALLS.items():
        for name, each in inspect.signature(function).parameters.items():
            if name in {"self", "cls", "update"} or each.kind is each.VAR_POSITIONAL:
                continue
            if each.kind is each.VAR_KEYWORD:
                yield from ((what, option) for option in _OPTIONS)
            else:
                yield what, name


@pytest.mark.filterwarnings("ignore:.*is removed in the next release:DeprecationWarning")
@pytest.mark.parametrize(("what", "name"), list(_parameters()))
def test_what_an_argument_is_not_is_refused_by_its_name(what: str, name: str) -> None:
    make, function = CALLS[what]
    needed = {
        each.name: VALID[each.name]
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty
        and each.name not in {"self", "cls", "update", name}
        and each.kind not in {each.VAR_KEYWORD, each.VAR_POSITIONAL}
    }
    call = make()
    for value in WRONG:
        try:
            found = call(**needed, **{name: value})
            if isinstance(found, Iterator):
                next(found, None)
        except LedgerError:
            # A rejected call changed nothing, so that the next one can use the same table.
            continue
        except OSError as error:
            # No file has such a name, says the system.
            assert (what, error.errno) == ("open", errno.ENAMETOOLONG)  # noqa: PT017 - of many
        except TypeError as error:
            assert name in str(error), (what, name, value, error)  # noqa: PT017 - of many
        except Exception as error:  # noqa: BLE001 - whatever else comes is the failure
            pytest.fail(f"{what}({name}={excerpt(value)}): {type(error).__name__}: {error}")
        call = make()


KINDS = [
    each
    for each in (*get_args(SchemaChange), *get_args(SpecChange), *get_args(SpecUpdate))
    if each.__struct_fields__
]
GOOD: dict[str, Any] = {
    "field_names": ("id",),
    "data_type": "INT",
    "new_data_type": "INT",
    "new_name": "other",
    "key": "k",
    "value": "v",
    "new_nullability": True,
    "name": "day",
    "source": ("id",),
    "updates": (),
    "columns": (),
    "move": ledger.Move("id", "FIRST"),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: str(each.__name__))
def test_a_change_with_a_field_of_another_type_is_refused(kind: type[Any]) -> None:
    schema = Schema.of({"id": "BIGINT", "day": "DATE"})
    table = a_table()
    for name in kind.__struct_fields__:
        for value in WRONG:
            given = {each: GOOD[each] for each in kind.__struct_fields__ if each in GOOD}
            change = kind(**{**given, name: value})
            for ask in (lambda: table.plan([change]), lambda: ledger.evolve(schema, [change])):  # noqa: B023 - called at once
                try:
                    ask()
                except LedgerError:
                    pass
                except Exception as error:  # noqa: BLE001 - whatever else comes is the failure
                    pytest.fail(f"{name}={excerpt(value)}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("value", WRONG, ids=lambda each: ascii(excerpt(each))[:20])
@pytest.mark.parametrize("name", ["path", "partition", "record_count", "value_counts", "format"])
def test_a_file_with_a_field_of_another_type_is_refused(name: str, value: Any) -> None:
    facts: dict[str, Any] = {"path": "z.parquet", "record_count": 1, "file_size_in_bytes": 9}
    table = a_table()
    before = table.state.version
    try:
        table.append([FileChange(**{**facts, "partition": ("2013-01-01",), name: value})])
    except LedgerError:
        assert table.state.version == before


def test_what_is_meant_plainly_is_accepted(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lake = ledger.open(tmp_path / "lake", author="ada")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"a": "BIGINT", "abc": "INT"}))
    file = tmp_path / "plain.parquet"
    pq.write_table(
        pa.table({"a": pa.array([1], pa.int64()), "abc": pa.array([1], pa.int32())}), file
    )

    table.add_files(file)
    (added,) = table.at().files
    table.delete_files(added.path)
    path, kind = cast(Any, "abc"), cast(Any, Schema.of({"x": "INT"}).field("x").type)
    table.alter([ledger.RenameColumn(path, "d"), ledger.AddColumn(cast(Any, "e"), kind)])

    assert table.at().schema.names == ("a", "d", "e")
    assert table.at(timestamp="2999-01-31T12:00:00Z").version == table.state.version
    with pytest.raises(ledger.InvalidInputError, match="version='3' is not a whole number"):
        table.at(version="3")  # type: ignore[arg-type]
    with pytest.raises(ledger.InvalidInputError, match=r"^row 1 .* has no column 'path'"):
        table.append([{"path": "x"}])
    with pytest.raises(ledger.InvalidInputError, match=r"files\[0\]='x' is no FileChange"):
        table.append(cast(Any, ["x"]))
    with pytest.raises(ledger.InvalidInputError, match="before=-4 is not a whole number, 0 or"):
        table.expire_snapshots(before=-4)
    with pytest.raises(ledger.InvalidChangeError, match="RenameColumn: Expected `str`, got `int`"):
        table.alter([ledger.RenameColumn(("a",), 3)])  # type: ignore[arg-type]


def test_an_argument_is_looked_at_by_its_place_as_by_its_name() -> None:
    lake = ledger.open("memory://arguments-by-place", author="ada")
    lake.create_database("shop")
    table = cast(Any, lake.create_table("shop.orders", Schema.of({"a": "BIGINT"})))
    with pytest.raises(LedgerError, match="changes=None is not a sequence of changes"):
        table.alter(None)
    with pytest.raises(LedgerError, match="changes=None is not a sequence of changes"):
        table.alter(changes=None)
    with pytest.raises(LedgerError, match="on_progress=3 is not a function"):
        table.add_files("a.parquet", 3)
