"""Functions: rejections, concurrent writers, and a law against a plain dictionary."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import (
    AlreadyExistsError,
    CommitConflictError,
    DataField,
    FileFunctionDefinition,
    Function,
    FunctionFileResource,
    Identifier,
    InvalidChangeError,
    InvalidInputError,
    InvalidNameError,
    LambdaFunctionDefinition,
    Ledger,
    NotFoundError,
    RemoveOption,
    SetOption,
    SqlFunctionDefinition,
    UpdateComment,
    ViewSchema,
)
from ledger.decide import (
    AlterFunction,
    CatalogRequest,
    CreateDatabase,
    CreateFunction,
    CreateView,
    DropDatabase,
    DropFunction,
)
from ledger.events import (
    AddDefinition,
    AddDialect,
    DropDefinition,
    FunctionAltered,
    FunctionChange,
    FunctionDropped,
    UpdateDefinition,
)
from ledger.model.types.text import parse_type
from ledger.opening.context import TableSetting
from ledger.relocation.exporting import export
from ledger.relocation.importing import import_lines
from ledger.state import CatalogStream
from tests.evolution.catalogs import Catalog, shop
from tests.evolution.test_catalog_laws import function_changes
from tests.evolution.test_catalog_races import after_race, conflict
from tests.lakes import lake_on, memory

AREA = Identifier("shop", "area")
SQL = SqlFunctionDefinition("length * width")
FILE = FileFunctionDefinition(
    (FunctionFileResource("jar", "/lib/area.jar"),), "java", "com.shop.Area", "eval"
)
LAMBDA = LambdaFunctionDefinition("(a, b) -> a * b", "java")
FUNCTION = Function(
    input_params=[DataField(0, "length", parse_type("DOUBLE"))],
    return_params=[DataField(0, "area", parse_type("DOUBLE NOT NULL"))],
    deterministic=True,
    definitions={"trino": SQL, "flink": FILE, "spark": LAMBDA},
    comment="of a rectangle",
    options={"owner": "ann"},
)


def lake_with_area() -> Ledger:
    lake = lake_on(memory())
    lake.create_database("shop")
    lake.create_function("shop.area", FUNCTION)
    return lake


def test_a_function_is_read_back_as_it_was_created_by_every_reader() -> None:
    lake = lake_with_area()
    entry = lake.function("shop.area")
    assert entry.function == FUNCTION
    assert (entry.audit.created_by, entry.identifier) == ("tester", AREA)
    kept = CatalogStream().decode_state(CatalogStream().encode_state(lake.state))
    assert kept == lake.state
    assert kept.functions[AREA].function.definitions == {
        "flink": FILE,
        "spark": LAMBDA,
        "trino": SQL,
    }
    assert ledger.open(lake.url).function("shop.area") == entry


def test_undeclared_parameters_differ_from_none_at_all() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    for name, params in (("open", None), ("closed", ())):
        lake.create_function(f"shop.{name}", Function(input_params=params))
        assert lake.function(f"shop.{name}").function.input_params == params


def test_a_function_lives_beside_a_view_of_its_name() -> None:
    lake = lake_with_area()
    lake.create_view("shop.area", ViewSchema((), "SELECT 1"))
    lake.rename_view("shop.area", "shop.all")
    lake.create_table("shop.area", {"id": "INT"})
    assert (lake.functions("shop"), lake.views("shop")) == (["area"], ["all"])
    lake.drop_function("shop.area")
    assert lake.functions("shop") == []
    assert lake.table("shop.area").schema.names == ("id",)


def test_a_database_with_a_function_is_not_dropped() -> None:
    lake = lake_with_area()
    with pytest.raises(InvalidChangeError, match=r"not empty: shop\.area"):
        lake.drop_database("shop")
    lake.drop_function("shop.area")
    lake.drop_database("shop")
    assert lake.databases() == []


def test_a_function_of_a_dropped_name_is_another_one() -> None:
    lake = lake_with_area()
    first = lake.function("shop.area").function_id
    lake.drop_function("shop.area")
    assert lake.create_function("shop.area", Function()).function_id != first


@pytest.mark.parametrize("name", ["area", "a1_", "a-b_c.1", "snapshot", "function.na_me-01", ".a"])
def test_every_name_that_paimon_accepts_is_accepted(name: str) -> None:
    catalog = shop(CreateFunction(Identifier("shop", name), "f1", Function()))
    assert catalog.state is not None
    assert [each.name for each in catalog.state.functions] == [name]


@pytest.mark.parametrize(
    "name", ["", "123", "_-", "a/b", "a\\b", "a$b", "a@b", "a*b", "a b", "ä", "a\n", "a" * 256]
)
def test_every_name_that_paimon_rejects_is_rejected(name: str) -> None:
    with pytest.raises(InvalidNameError, match="function name"):
        shop(CreateFunction(Identifier("shop", name), "f1", Function()))


def test_a_missing_database_and_a_taken_name_are_rejected() -> None:
    lake = lake_with_area()
    with pytest.raises(NotFoundError, match="database attic does not exist"):
        lake.create_function("attic.area", Function())
    with pytest.raises(AlreadyExistsError, match=r"function shop\.area exists already"):
        lake.create_function("shop.area", Function())
    for ask in (lake.function, lake.drop_function):
        with pytest.raises(NotFoundError, match=r"did you mean shop\.area\?"):
            ask("shop.aera")
    with pytest.raises(NotFoundError, match=r"shop\.aera does not exist"):
        lake.alter_function("shop.aera", [SetOption("a", "b")])
    with pytest.raises(AlreadyExistsError, match=r"function id f1 is shop\.area's"):
        shop(CreateFunction(AREA, "f1", Function())).ask(
            CreateFunction(Identifier("shop", "b"), "f1", Function())
        )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (AddDefinition("trino", SQL), AlreadyExistsError, "has definition 'trino'"),
        (UpdateDefinition("duck", SQL), NotFoundError, "has no definition 'duck', only"),
        (DropDefinition("duck"), NotFoundError, "has no definition 'duck', only"),
        (AddDialect("spark", "SELECT 1"), InvalidChangeError, "no change of a function"),
        (AddDefinition("", SQL), InvalidChangeError, "an empty name"),
    ],
)
def test_a_change_that_does_not_fit_changes_nothing(
    change: Any, error: type[Exception], message: str
) -> None:
    lake = lake_with_area()
    before = lake.state.version
    with pytest.raises(error, match=message):
        lake.alter_function("shop.area", [SetOption("a", "b"), change])
    assert (lake.state.version, lake.function("shop.area").function) == (before, FUNCTION)


SECRET = FileFunctionDefinition((FunctionFileResource("jar", "s3://me:hunter2@b/a.jar"),))


@pytest.mark.parametrize(
    "request_with_it",
    [
        CreateFunction(Identifier("shop", "b"), "f2", Function(definitions={"x": SECRET})),
        AlterFunction(AREA, (AddDefinition("x", SECRET),)),
        AlterFunction(AREA, (UpdateDefinition("trino", SECRET),)),
    ],
)
def test_a_file_whose_url_has_credentials_is_rejected_and_not_repeated(
    request_with_it: CatalogRequest,
) -> None:
    catalog = shop(CreateFunction(AREA, "f1", FUNCTION))
    with pytest.raises(InvalidInputError, match="credentials") as raised:
        catalog.ask(request_with_it)
    assert "hunter2" not in str(raised.value)


def test_a_parameter_with_an_id_that_no_format_holds_is_rejected() -> None:
    far = Function(input_params=[DataField(2**31, "a", parse_type("INT"))])
    with pytest.raises(InvalidChangeError, match="field id"):
        shop(CreateFunction(AREA, "f1", far))


def test_a_definition_of_another_kind_is_rejected() -> None:
    wrong: Any = Function(definitions={"trino": "a * b"})  # type: ignore[dict-item]
    with pytest.raises(InvalidChangeError, match="give a FileFunctionDefinition"):
        shop(CreateFunction(AREA, "f1", wrong))


def test_concurrent_changes_of_other_cells_all_apply() -> None:
    catalog = shop(CreateFunction(AREA, "f1", FUNCTION))
    mine = AlterFunction(AREA, (DropDefinition("trino"), SetOption("a", "1")))
    theirs = AlterFunction(AREA, (UpdateDefinition("spark", SQL), SetOption("b", "1")))
    (event,) = after_race(catalog, mine, theirs)
    assert isinstance(event, FunctionAltered)
    assert event.changes == mine.changes


@pytest.mark.parametrize(
    ("mine", "same", "other", "cell"),
    [
        (SetOption("a", "1"), SetOption("a", "1"), SetOption("a", "2"), "option a"),
        (UpdateComment("x"), UpdateComment("x"), UpdateComment("y"), "comment"),
        (
            AddDefinition("x", SQL),
            AddDefinition("x", SQL),
            AddDefinition("x", FILE),
            "definition x",
        ),
        (
            UpdateDefinition("trino", LAMBDA),
            UpdateDefinition("trino", LAMBDA),
            DropDefinition("trino"),
            "definition trino",
        ),
        (
            DropDefinition("trino"),
            DropDefinition("trino"),
            UpdateDefinition("trino", FILE),
            "definition trino",
        ),
    ],
)
def test_concurrent_changes_of_one_cell_agree_or_conflict(
    mine: FunctionChange, same: FunctionChange, other: FunctionChange, cell: str
) -> None:
    def catalog() -> Catalog:
        return shop(CreateFunction(AREA, "f1", FUNCTION))

    assert after_race(catalog(), AlterFunction(AREA, (mine,)), AlterFunction(AREA, (same,))) == ()
    lost = conflict(catalog(), AlterFunction(AREA, (mine,)), AlterFunction(AREA, (other,)))
    assert (lost.cell, lost.version) == (f"function shop.area {cell}", 2)


def test_a_concurrent_creation_or_drop_is_a_conflict_for_what_needs_the_name() -> None:
    create = CreateFunction(AREA, "f2", FUNCTION)
    assert conflict(shop(), create, CreateFunction(AREA, "f1", FUNCTION)).cell == (
        "function shop.area"
    )
    assert conflict(shop(), create, DropDatabase("shop")).cell == "database shop"
    assert conflict(shop(), DropDatabase("shop"), create).cell == "database shop"
    # A view that takes the same name is no reason.
    assert after_race(shop(), create, CreateView(AREA, "v1", ViewSchema((), "q")))

    def catalog() -> Catalog:
        return shop(CreateFunction(AREA, "f1", FUNCTION))

    alter = AlterFunction(AREA, (UpdateComment("x"),))
    assert conflict(catalog(), alter, DropFunction(AREA)).cell == "function shop.area"
    again: Sequence[CatalogRequest] = (DropFunction(AREA), CreateFunction(AREA, "f2", FUNCTION))
    assert after_race(catalog(), DropFunction(AREA), *again) == ()
    (event,) = after_race(catalog(), DropFunction(AREA), CreateDatabase("attic"))
    assert isinstance(event, FunctionDropped)


Model = dict[str, dict[str, Any]]


def changed(model: Model, change: FunctionChange) -> None:
    """Apply a change to a plain model of a function.

    Raises:
        KeyError: A definition to update or drop is missing.
        ValueError: One to add is there.
    """
    match change:
        case SetOption(key=key, value=value):
            model["options"][key] = value
        case RemoveOption(key=key):
            model["options"].pop(key, None)
        case UpdateComment(comment=comment):
            model["comment"] = {"": comment}
        case AddDefinition(name=name, definition=definition):
            if name in model["definitions"]:
                raise ValueError(name)
            model["definitions"][name] = definition
        case UpdateDefinition(name=name, definition=definition):
            _ = model["definitions"][name]
            model["definitions"][name] = definition
        case DropDefinition(name=name):
            del model["definitions"][name]


@given(st.lists(st.lists(function_changes, max_size=4), max_size=12))
def test_any_changes_do_to_a_function_what_they_do_to_a_dictionary(
    requests: list[list[FunctionChange]],
) -> None:
    catalog = shop(CreateFunction(AREA, "f1", Function()))
    model: Model = {"options": {}, "definitions": {}, "comment": {"": None}}
    for changes in requests:
        wanted = {key: dict(part) for key, part in model.items()}
        expected: type[Exception] | None = None
        try:
            for change in changes:
                changed(wanted, change)
        except ValueError:
            expected = AlreadyExistsError
        except KeyError:
            expected = NotFoundError
        if expected is None:
            events = catalog.ask(AlterFunction(AREA, tuple(changes)))
            assert bool(events) == (wanted != model)
            model = wanted
        else:
            with pytest.raises(expected):
                catalog.ask(AlterFunction(AREA, tuple(changes)))
        assert catalog.state is not None
        function = catalog.state.functions[AREA].function
        assert function.options == model["options"]
        assert function.definitions == model["definitions"]
        assert function.comment == model["comment"][""]


def test_functions_are_exported_and_imported() -> None:
    source = memory()
    lake = lake_on(source)
    lake.create_database("shop")
    lake.create_function("shop.area", FUNCTION)
    lake.alter_function("shop.area", [DropDefinition("trino")])
    out, target = io.BytesIO(), memory()
    export(TableSetting(source, {}, author=""), out, [])
    out.seek(0)
    import_lines(TableSetting(target, {}, author=""), out)
    moved = lake_on(target)
    assert moved.state.functions == lake.state.functions
    assert [*moved.events()] == [*lake.events()]


def test_the_log_says_what_happened_to_functions() -> None:
    lake = lake_with_area()
    lake.alter_function("shop.area", [SetOption("a", "b")], message="for all")
    lake.drop_function("shop.area")
    kinds = [each["kind"] for each in lake.history()]
    assert kinds[:3] == ["dropFunction", "alterFunction", "createFunction"]


def test_a_function_with_a_kind_of_a_later_version_asks_for_an_upgrade() -> None:
    record = CatalogStream().encode_state(lake_with_area().state)
    with pytest.raises(msgspec.DecodeError):
        CatalogStream().decode_state(record.replace(b'"type":"sql"', b'"type":"wasm"'))


def test_a_conflict_survives_with_its_winner() -> None:
    catalog = shop(CreateFunction(AREA, "f1", FUNCTION))
    lost = conflict(
        catalog,
        AlterFunction(AREA, (UpdateComment("x"),)),
        AlterFunction(AREA, (UpdateComment("y"),)),
    )
    assert isinstance(lost, CommitConflictError)
    assert isinstance(lost.winner, FunctionAltered)
