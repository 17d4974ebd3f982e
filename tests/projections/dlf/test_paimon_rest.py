"""JSON that Paimon's Java classes print, and that its Python client sends and accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import Identifier
from ledger.model import SnapshotInstant
from projections.dlf import GetTableResponse, Style, read, render
from projections.dlf.keys import VIEWS
from projections.dlf.objects import (
    AlterDatabaseRequest,
    AlterTableRequest,
    CommitTableRequest,
    CommitTableResponse,
    ConfigResponse,
    CreateBranchRequest,
    CreateDatabaseRequest,
    CreatePartitionsRequest,
    CreateTableRequest,
    CreateTagRequest,
    ErrorResponse,
    GetDatabaseResponse,
    GetTableSnapshotResponse,
    GetTableTokenResponse,
    GetTagResponse,
    ListBranchesResponse,
    ListConsumersResponse,
    ListDatabasesResponse,
    ListPartitionsByFilterRequest,
    ListPartitionsResponse,
    ListTableDetailsResponse,
    ListTablesGloballyResponse,
    ListTablesResponse,
    ListTagsResponse,
    RenameBranchRequest,
    RenameRequest,
    RollbackTableRequest,
)

DATA = Path(__file__).parents[2] / "data/paimon"
JAVA: dict[str, Any] = json.loads((DATA / "rest_objects.json").read_text(encoding="utf-8"))
WIRE: list[Any] = json.loads((DATA / "rest_objects_pypaimon.json").read_text(encoding="utf-8"))
KINDS: dict[str, type] = {each.__name__: each for each in VIEWS} | {
    "Identifier": Identifier,
    "RenameTableRequest": RenameRequest,
}
MAPS = ("options", "definitions", "spec", "columnMasking")


def in_order(printed: Any, where: str = "") -> Any:
    """Return JSON with its keys in a list, so that their order counts; a map's has no meaning."""
    if isinstance(printed, list):
        return [in_order(each, where) for each in printed]
    if isinstance(printed, dict):
        pairs = [(key, in_order(value, key)) for key, value in printed.items()]
        return sorted(pairs) if where in MAPS else pairs
    return printed


def test_the_fixture_is_whole() -> None:
    assert len(JAVA) == 54


@pytest.mark.parametrize("name", JAVA)
def test_what_paimons_java_prints_is_read_and_printed_again(name: str) -> None:
    printed = JAVA[name]["json"]
    kind = KINDS[JAVA[name]["javaClass"]]

    view: object = read(json.dumps(printed), kind)

    assert in_order(render(view, Style.PAIMON_REST)) == in_order(printed)


@pytest.mark.parametrize("name", JAVA)
def test_unknown_keys_change_nothing(name: str) -> None:
    kind = KINDS[JAVA[name]["javaClass"]]

    view: object = read({**JAVA[name]["json"], "fromTheFuture": [{"deep": 1}]}, kind)

    assert view == read(JAVA[name]["json"], kind)


@pytest.mark.parametrize("name", JAVA)
def test_the_dlf_spelling_of_a_paimon_object_reads_as_what_the_page_keeps_of_it(name: str) -> None:
    kind = KINDS[JAVA[name]["javaClass"]]
    spelled = render(read(JAVA[name]["json"], kind), Style.DLF)

    assert render(read(json.dumps(spelled), kind), Style.DLF) == spelled


REQUESTS: dict[str, type] = {
    "create_database": CreateDatabaseRequest,
    "create_database_again": CreateDatabaseRequest,
    "create_table": CreateTableRequest,
    "write_commit_1": CommitTableRequest,
    "write_commit_2": CommitTableRequest,
    "create_tag": CreateTagRequest,
    "create_branch": CreateBranchRequest,
    "rename_branch": RenameBranchRequest,
    "rollback_snapshot": RollbackTableRequest,
    "rollback_tag": RollbackTableRequest,
    "rename_table": RenameRequest,
    "alter_database": AlterDatabaseRequest,
    "create_partitions": CreatePartitionsRequest,
}
# By the last segment of the path, or the keys of the body.
RESPONSES: dict[frozenset[str], type] = {
    frozenset({"defaults", "overrides"}): ConfigResponse,
    frozenset({"success"}): CommitTableResponse,
    frozenset({"databases", "nextPageToken"}): ListDatabasesResponse,
    frozenset({"tables", "nextPageToken"}): ListTablesResponse,
    frozenset({"tags", "nextPageToken"}): ListTagsResponse,
    frozenset({"branches"}): ListBranchesResponse,
    frozenset({"partitions", "nextPageToken"}): ListPartitionsResponse,
    frozenset({"token", "expiresAtMillis"}): GetTableTokenResponse,
    frozenset({"snapshot"}): GetTableSnapshotResponse,
}


def kind_of_response(body: dict[str, Any]) -> type | None:
    if "message" in body:
        return ErrorResponse
    if "tagName" in body:
        return GetTagResponse
    if "schemaId" in body:
        return GetTableResponse
    if "location" in body:
        return GetDatabaseResponse
    return RESPONSES.get(frozenset(body))


def kind_of_request(exchange: dict[str, Any]) -> type | None:
    if "changes" in (exchange["body"] or {}):
        return AlterTableRequest
    return REQUESTS.get(exchange["step"]) if exchange["body"] else None


def without_nothing(value: Any) -> Any:
    """Return JSON without nulls, empty maps and lists, and the Python client's `nullable`."""
    if isinstance(value, list):
        return [without_nothing(each) for each in value]
    if isinstance(value, dict):
        pairs = {key: without_nothing(each) for key, each in value.items() if key != "nullable"}
        return {key: each for key, each in pairs.items() if each not in (None, {}, [])}
    return value


EXCHANGES = [
    (body, kind, f"{exchange['step']} {exchange['method']} {index}")
    for index, exchange in enumerate(WIRE)
    for body, kind in (
        (exchange["body"], kind_of_request(exchange)),
        (exchange["response"], kind_of_response(exchange["response"] or {})),
    )
    if kind is not None
]


@pytest.mark.parametrize(
    ("body", "kind"), [each[:2] for each in EXCHANGES], ids=[each[2] for each in EXCHANGES]
)
def test_what_the_python_client_sends_and_takes_is_read_and_said_again(
    body: Any, kind: type
) -> None:
    again = render(read(json.dumps(body), kind), Style.PAIMON_REST)

    assert without_nothing(again) == without_nothing(body)


def test_every_body_of_the_python_client_has_a_view() -> None:
    body_count = sum(bool(each["body"]) + bool(each["response"]) for each in WIRE)

    assert len(EXCHANGES) == body_count


ONLY_IN_THE_CODE: list[tuple[type, Any]] = [
    (
        ListConsumersResponse,
        {"consumers": [{"consumerId": "c", "nextSnapshot": 4}], "nextPageToken": None},
    ),
    (
        ListTablesGloballyResponse,
        {"tables": [{"database": "d", "object": "t"}], "nextPageToken": "d.t"},
    ),
    (
        ListTableDetailsResponse,
        {"tableDetails": [JAVA["getTableResponse"]["json"]], "nextPageToken": None},
    ),
    (ListPartitionsByFilterRequest, {"filter": "{}", "maxResults": 10}),
]


@pytest.mark.parametrize(("kind", "printed"), ONLY_IN_THE_CODE)
def test_objects_that_are_only_in_paimons_code_are_read_and_printed(
    kind: type, printed: Any
) -> None:
    assert render(read(printed, kind), Style.PAIMON_REST) == printed


def test_a_gateways_error_is_read_by_its_capital_keys() -> None:
    error = read({"Message": "no", "Code": 403, "RequestId": "1"}, ErrorResponse)

    assert (error.message, error.code, error.resource_type) == ("no", 403, None)


def test_a_missing_list_or_map_reads_as_an_empty_one() -> None:
    assert read('{"name": "d", "options": null}', CreateDatabaseRequest).options == {}
    assert read("{}", ListTablesResponse).tables == ()


def test_credentials_are_not_shown_by_accident() -> None:
    token = read({"token": {"secret": "s3cr3t"}, "expiresAtMillis": 1}, GetTableTokenResponse)

    assert "s3cr3t" not in repr(token)


def test_a_rollback_names_its_instant_in_either_style() -> None:
    for style in Style:
        request = RollbackTableRequest(SnapshotInstant(3), from_snapshot=5)

        assert read(render(request, style), RollbackTableRequest) == request
