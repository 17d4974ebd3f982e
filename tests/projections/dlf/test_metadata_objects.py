from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import (
    DataField,
    FileChange,
    FileFunctionDefinition,
    Function,
    FunctionFileResource,
    Identifier,
    InvalidInputError,
    LambdaFunctionDefinition,
    Schema,
    SetOption,
    SqlFunctionDefinition,
    UnsupportedError,
    UpdateComment,
    ViewSchema,
)
from ledger.events import AddDefinition, DropDefinition, UpdateDefinition
from ledger.model import Snapshot, SnapshotInstant, TagInstant, Totals, VersionInstant
from ledger.state import Audit, FunctionEntry, TableState, ViewEntry, identity_spec
from ledger.table_handle import handle_of
from projections.dlf import (
    GetFunctionResponse,
    GetTableResponse,
    GetViewResponse,
    Style,
    get_function_response,
    get_table_response,
    get_view_response,
    read,
    render,
    table_snapshot,
)
from projections.dlf.objects import AlterFunctionRequest
from projections.paimon import PAIMON
from tests.lakes import lake_on, memory

JAVA: dict[str, Any] = {
    name: printed["json"]
    for name, printed in json.loads(
        (Path(__file__).parents[2] / "data/paimon/rest_objects.json").read_text(encoding="utf-8")
    ).items()
}
SNAPSHOT = Snapshot(
    id=6,
    schema_id=0,
    commit_kind="COMPACT",
    commit_user="446aac61",
    commit_identifier=9223372036854775807,
    time_millis=1741701564261,
    total_record_count=1024,
    delta_record_count=10,
    base_manifest_list="manifest-list-0",
    delta_manifest_list="manifest-list-1",
    log_offsets={0: 1, 1: 3},
)


def a_table(path: str = "shop.db/orders") -> TableState:
    schema = Schema.of({"id": "BIGINT NOT NULL", "day": "DATE"}, partition_keys=["day"])
    return TableState(
        version=3,
        time_millis=4,
        effective_millis=4,
        table_id="f301d2ce",
        path=path,
        schema=schema,
        specs=(identity_spec(schema),),
        snapshot=SNAPSHOT,
        totals=Totals(1024, 99, 2, 1741701564261),
        created_at=1,
        created_by="ann",
        updated_at=4,
        updated_by="bob",
    )


def test_a_table_is_rendered_as_the_dlf_page_has_it() -> None:
    view = get_table_response(a_table(), Identifier("shop", "orders"), root_url="oss://lake/")

    assert json.dumps(render(view)) == json.dumps(
        {
            "id": "f301d2ce",
            "name": "orders",
            "path": "oss://lake/shop.db/orders",
            "isExternal": "false",
            "schemaId": "0",
            "schema": {
                "fields": [
                    {"id": 0, "name": "id", "type": {"primitiveType": "BIGINT NOT NULL"}},
                    {"id": 1, "name": "day", "type": {"primitiveType": "DATE"}},
                ],
                "partitionKeys": ["day"],
                "primaryKeys": [],
                "options": {},
            },
            "owner": "ann",
            "createdAt": 1,
            "createdBy": "ann",
            "updatedAt": 4,
            "updatedBy": "bob",
        }
    )


def test_an_external_location_is_left_alone() -> None:
    state = a_table(path="s3://elsewhere/orders")

    view = get_table_response(state, Identifier("shop", "orders"), root_url="oss://lake")

    assert view.path == "s3://elsewhere/orders"


PAGE_SAYS_NO = {
    *("id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser"),
    *("commitIdentifier", "commitKind", "timeMillis"),
}
"""The keys of a Snapshot that the DLF page says are never null."""


@pytest.mark.parametrize("formats", ["paimon", "iceberg", "paimon,iceberg"])
def test_what_the_page_says_is_never_null_is_there_in_every_snapshot(formats: str) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": formats})
    table = lake.create_table("shop.t", schema)
    table.append([FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    table.delete_files(["a.parquet"])
    table.rollback(snapshot=1)
    for number in (1, 2, 3):
        at = table.at(snapshot=number)
        view = table_snapshot(at.state)
        assert view is not None
        document = render(view)["snapshot"]
        assert {key for key in PAGE_SAYS_NO if document.get(key) not in (None, "")} == PAGE_SAYS_NO
        assert read(document, Snapshot) == view.snapshot
        # Of a snapshot alone, nobody knows the table.
        bare = render(at.snapshot)
        assert (bare["baseManifestList"], bare["deltaManifestList"]) == ("", "")
        assert read(bare, Snapshot) == at.snapshot
    assert render(at.snapshot, Style.PAIMON_REST)["baseManifestList"] is None


def test_the_lists_have_the_names_that_paimons_files_have() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.t", Schema.of({"id": "INT"}))
    table.append([FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    view = table_snapshot(table.state)
    assert view is not None
    PAIMON.project(handle_of(table))
    body = handle_of(table).log.store.read(f"{handle_of(table).path}/snapshot/snapshot-1")
    written = json.loads(body or b"")
    assert view.snapshot.base_manifest_list == written["baseManifestList"]
    assert view.snapshot.delta_manifest_list == written["deltaManifestList"]


def test_a_snapshot_is_rendered_as_the_dlf_page_has_it() -> None:
    view = table_snapshot(a_table())
    assert view is not None

    assert json.dumps(render(view)) == json.dumps(
        {
            "snapshot": {
                "version": 3,
                "id": 6,
                "schemaId": 0,
                "baseManifestList": "manifest-list-0",
                "deltaManifestList": "manifest-list-1",
                "commitUser": "446aac61",
                "commitIdentifier": 9223372036854775807,
                "commitKind": "COMPACT",
                "timeMillis": 1741701564261,
                "logOffsets": {"0": 1, "1": 3},
                "totalRecordCount": 1024,
                "deltaRecordCount": 10,
            },
            "recordCount": 1024,
            "fileSizeInBytes": 99,
            "fileCount": 2,
            "lastFileCreationTime": 1741701564261,
        }
    )


def test_counts_that_are_optional_on_the_dlf_page_read_as_zero() -> None:
    document = render(SNAPSHOT)
    del document["totalRecordCount"], document["version"]

    snapshot = read({**document, "deltaRecordCount": None}, Snapshot)

    assert (snapshot.total_record_count, snapshot.delta_record_count) == (0, 0)
    assert (snapshot.version, snapshot.log_offsets) == (3, {0: 1, 1: 3})


@pytest.mark.parametrize("style", Style)
def test_views_survive_the_way_out_and_back(style: Style) -> None:
    schema = ViewSchema(Schema.of({"n": "BIGINT"}).fields, "SELECT 1", {"spark": "SELECT 1L"})
    view = GetViewResponse(id="v1", name="counts", schema=schema)

    assert read(render(view, style), GetViewResponse) == view


@pytest.mark.parametrize("style", Style)
def test_functions_survive_the_way_out_and_back(style: Style) -> None:
    area = Function(
        input_params=Schema.of({"a": "DOUBLE", "b": "INT NOT NULL"}).fields,
        return_params=(),
        deterministic=True,
        definitions={
            "duckdb": SqlFunctionDefinition("a * b"),
            "flink": FileFunctionDefinition((FunctionFileResource("jar", "s3://lake/a.jar"),)),
            "spark": LambdaFunctionDefinition("(a, b) -> a * b", "java"),
        },
        options={"k": "v"},
    )
    audit = Audit(1, "ann", 2, "bob")
    function = get_function_response(FunctionEntry(Identifier("shop", "area"), "f1", area, audit))

    assert (function.owner, function.created_by, function.updated_at) == ("ann", "ann", 2)
    assert read(render(function, style), GetFunctionResponse) == function
    changes = AlterFunctionRequest(
        (
            SetOption("a", "b"),
            UpdateComment(),
            *(AddDefinition(name, each) for name, each in area.definitions.items()),
            UpdateDefinition("spark", area.definitions["flink"]),
            DropDefinition("trino"),
        )
    )
    assert read(render(changes, style), AlterFunctionRequest) == changes


def test_a_view_of_the_catalog_is_rendered_with_and_without_its_audit() -> None:
    schema = ViewSchema((), "SELECT 1", {"flink": "SELECT 1"}, "one", {"k": "v"})
    entry = ViewEntry(Identifier("shop", "ones"), "v1", schema, Audit(1, "ann", 2, "bob"))

    view = get_view_response(entry)

    page = {
        "id": "v1",
        "name": "ones",
        "schema": {
            "fields": [],
            "query": "SELECT 1",
            "dialects": {"flink": "SELECT 1"},
            "comment": "one",
            "options": {"k": "v"},
        },
    }
    audit = {"createdAt": 1, "createdBy": "ann", "updatedAt": 2, "updatedBy": "bob"}
    assert json.dumps(render(view)) == json.dumps(page)
    assert render(view, Style.PAIMON_REST) == {**page, "owner": "ann", **audit}
    assert get_view_response(entry, owner="cid").owner == "cid"


@pytest.mark.parametrize(
    ("style", "snapshot", "tag"),
    [
        (
            Style.DLF,
            {"snapshotInstant": {"snapshotId": 1}},
            {"tagInstant": {"tagName": "v"}},
        ),
        (
            Style.PAIMON_REST,
            JAVA["rollbackTableRequestBySnapshot"]["instant"],
            {"type": "tag", "tagName": "v"},
        ),
    ],
)
def test_instants_read_and_render_in_both_styles(style: Style, snapshot: Any, tag: Any) -> None:
    assert render(SnapshotInstant(1), style) == snapshot
    assert render(TagInstant("v"), style) == tag
    assert read(snapshot, SnapshotInstant) == SnapshotInstant(1)
    assert read(tag, TagInstant) == TagInstant("v")


@pytest.mark.parametrize("style", Style)
def test_an_instant_that_only_the_ledger_knows_is_rejected(style: Style) -> None:
    with pytest.raises(UnsupportedError, match="version 7"):
        render(VersionInstant(7), style)


def test_identifiers_have_their_own_keys_in_each_style() -> None:
    identifier = Identifier("shop", "orders")

    assert render(identifier) == {"databaseName": "shop", "tableName": "orders"}
    assert render(identifier, Style.PAIMON_REST) == {"database": "shop", "object": "orders"}
    assert read(render(identifier), Identifier) == identifier
    assert read(render(identifier, Style.PAIMON_REST), Identifier) == identifier


NESTED = {
    "id": 4,
    "name": "m",
    "type": {
        "mapType": {
            "type": "MAP NOT NULL",
            "key": {"primitiveType": "STRING"},
            "value": {
                "rowType": {
                    "type": "ROW",
                    "fields": [
                        {"id": 5, "name": "a", "type": {"primitiveType": "DECIMAL(10, 2)"}},
                        {
                            "id": 6,
                            "name": "b",
                            "type": {
                                "multisetType": {
                                    "type": "MULTISET",
                                    "element": {"primitiveType": "INT NOT NULL"},
                                }
                            },
                            "description": "bag",
                        },
                    ],
                }
            },
        }
    },
}


def test_nested_types_are_wrapped_on_every_level() -> None:
    assert render(read(NESTED, DataField)) == NESTED


@pytest.mark.parametrize("column", ["TIME(0)", "BLOB", "GEOMETRY", "UUID"])
def test_a_type_without_a_word_on_the_dlf_page_is_rejected_by_column(column: str) -> None:
    with pytest.raises(UnsupportedError, match="column shape is"):
        render(Schema.of({"id": "INT", "shape": column}))


def test_paimon_rest_has_words_for_paimons_own_types_only() -> None:
    fields = render(Schema.of({"a": "TIME(0)", "b": "BLOB"}), Style.PAIMON_REST)["fields"]

    assert [each["type"] for each in fields] == ["TIME(0)", "BLOB"]
    with pytest.raises(UnsupportedError, match="column key is UUID"):
        render(Schema.of({"key": "UUID"}), Style.PAIMON_REST)


WRONG: list[tuple[list[str | int], object, str]] = [
    (["schema", "fields", 1, "type"], {"primitiveType": "LONG"}, "$.schema.fields[1].type: "),
    (["schema", "fields", 1, "id"], "1", "$.schema.fields[1].id: "),
    (["schema", "fields"], {}, "$.schema.fields: {} is not a list"),
    (["schema", "partitionKeys"], "ab", "$.schema.partitionKeys: 'ab' is not a list"),
    (["schema", "primaryKeys"], ["a", 1], "$.schema.primaryKeys[1]: 1 is not a string"),
    (["schema", "options"], {"a": 1}, "$.schema.options['a']: 1 is not a string"),
    (["schema"], [], "$.schema: [] is not an object"),
    (["isExternal"], "yes", "$.isExternal: 'yes' is not true or false"),
    (["schemaId"], "one", "$.schemaId: 'one' is not a whole number"),
    (["createdAt"], True, "$.createdAt: True is not a whole number"),
    (["createdAt"], 1.5, "$.createdAt: 1.5 is not a whole number"),
    (["path"], None, "$.path: is missing"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG, ids=lambda each: str(each)[:40])
def test_an_error_names_the_place_of_the_bad_value(
    place: list[str | int], value: object, message: str
) -> None:
    document = copy.deepcopy(JAVA["getTableResponse"])
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value

    with pytest.raises(InvalidInputError) as refused:
        read(document, GetTableResponse)

    assert str(refused.value).startswith(message)


TYPES = st.sampled_from(["INT", "STRING NOT NULL", "DECIMAL(10, 2)", "TIMESTAMP(3)", "BYTES"])
NAMES = st.text("abcdef_", min_size=1, max_size=6)


@given(
    columns=st.dictionaries(NAMES, TYPES, min_size=1),
    options=st.dictionaries(st.text(), st.text()),
    comment=st.none() | st.text(),
    style=st.sampled_from(Style),
)
def test_a_schema_survives_the_way_out_and_back(
    columns: dict[str, str], options: dict[str, str], comment: str | None, style: Style
) -> None:
    schema = Schema.of(columns, options=options, comment=comment)

    assert read(json.loads(json.dumps(render(schema, style))), Schema) == schema
