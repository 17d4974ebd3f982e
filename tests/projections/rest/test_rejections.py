"""Bad input: rejected before anything is written, by an answer that says what to change."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.rest.requests import is_nested_deeper_than
from tests.projections.rest.application import SCHEMA, Application, error_of, set_property
from tests.projections.rest.test_tables import ORDERS, set_main, snapshot

UUID = "11111111-1111-7111-8111-111111111111"
DEEP = b'{"updates": ' + b"[" * 100_000 + b"]" * 100_000 + b', "requirements": []}'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body cannot be read"),
        (b"not json", "the body cannot be read"),
        (b'{"updates": [], "requirements": [', "the body"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"updates": []}', "missing required field `requirements`"),
        (b'{"updates": {}, "requirements": []}', "Expected `array`, got `object` - at `$.updates`"),
        (b'{"updates": ["x"], "requirements": []}', "update"),
        (b'{"updates": [{"action": "fly"}], "requirements": []}', "fly"),
        (b'{"updates": [], "requirements": [{"type": "assert-luck"}]}', "assert-luck"),
        (
            b'{"requirements": [], "updates": [{"action": "set-default-spec", "spec-id": "1"}]}',
            "spec-id",
        ),
        (
            b'{"updates": [{"action": "set-location", "location": "\xff"}], "requirements": []}',
            "the body cannot be read",
        ),
        (DEEP, "nested more than 200 deep"),
        (b"[" * 100_000, "nested more than 200 deep"),
        (b'{"x": "' + b"a" * (1 << 20) + b'"}', "the most that this server reads"),
    ],
)
def test_a_body_that_is_no_commit_is_rejected(app: Application, body: bytes, said: str) -> None:
    app.create()
    status, _, message = error_of(app.send(ORDERS, body))

    assert status == 400
    assert said in message
    assert app.lake.table("shop.orders").state.version == 0


def test_a_body_without_a_length_is_limited_as_it_comes(app: Application) -> None:
    parts = iter([b"a" * (1 << 19)] * 3)
    answer = app.http.post("/v1/namespaces", content=parts)

    assert error_of(answer)[0] == 400


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ({"type": "assert-table-uuid", "uuid": UUID}, "UUID does not match"),
        ({"type": "assert-create"}, "table already exists"),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3},
            "branch main has changed",
        ),
    ],
)
def test_a_failed_requirement_is_a_conflict_that_names_it(
    app: Application, requirement: dict[str, Any], said: str
) -> None:
    app.create()
    body = {
        "requirements": [requirement],
        "updates": [snapshot(app, 1), set_main(1)],
    }
    status, kind, message = error_of(app.post(ORDERS, body))

    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith(f"Requirement failed: {said}")
    assert app.lake.table("shop.orders").state.version == 0


def test_an_old_sequence_number_is_a_conflict(app: Application) -> None:
    app.create()
    app.commit(snapshot(app, 1), set_main(1))
    app.commit(snapshot(app, 2, 1), set_main(2))
    late = snapshot(app, 3, 2)
    late["snapshot"]["sequence-number"] = 1

    status, kind, message = error_of(app.commit(late, set_main(3)))
    assert (status, kind) == (409, "CommitFailedException")
    assert "sequence number 1" in message


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ([{"action": "set-location", "location": "/etc"}], "outside of"),
        ([{"action": "set-location", "location": "s3://elsewhere/t"}], "outside of"),
        ([{"action": "set-location", "location": "nowhere"}], "nowhere"),
        ([set_property("write.metadata.path", "file:///etc/cron.d")], "outside of"),
        ([set_property("write.data.path", "file:///etc/cron.d")], "outside of"),
        ([set_property("ledger.formats", "paimon")], "ledger"),
        ([{"action": "assign-uuid", "uuid": UUID}], "uuid"),
        ([set_main(9)], "no such snapshot"),
        ([{"action": "set-current-schema", "schema-id": 7}], "current schema cannot be 7"),
        ([{"action": "upgrade-format-version", "format-version": 1}], "cannot go back"),
        ([{"action": "upgrade-format-version", "format-version": 9}], "not supported"),
    ],
)
def test_updates_that_cannot_be_are_rejected(
    app: Application, updates: list[dict[str, Any]], said: str
) -> None:
    app.create()
    status, _, message = error_of(app.commit(*updates))

    assert status == 400
    assert said in message
    assert app.lake.table("shop.orders").state.version == 0


def test_a_snapshot_id_of_another_snapshot_is_rejected(app: Application) -> None:
    app.create()
    app.commit(snapshot(app, 1), set_main(1))
    other = snapshot(app, 2)
    other["snapshot"]["snapshot-id"] -= 1

    status, _, message = error_of(app.commit(other))
    assert status == 400
    assert "use a new id" in message


@pytest.mark.parametrize("column", ["manifest-list", "manifests"])
def test_manifests_outside_of_the_allowed_locations_are_rejected(
    app: Application, column: str
) -> None:
    app.create()
    made = snapshot(app, 1)
    del made["snapshot"]["manifest-list"]
    made["snapshot"][column] = "/etc/passwd" if column == "manifest-list" else ["/etc/passwd"]

    assert error_of(app.commit(made, set_main(1)))[0] == 400


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b ", "$", "_ledger", "metadata", "x" * 300, "a\nb", "a%b"]
)
def test_a_name_that_is_not_safe_is_rejected_with_the_rule(app: Application, name: str) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    made = app.post("namespaces/shop/tables", {"name": name, "schema": SCHEMA})
    database = app.post("namespaces", {"namespace": [name]})
    source = {"namespace": ["shop"], "name": name}
    renamed = app.post("tables/rename", {"source": source, "destination": source})

    assert error_of(made)[0] == 400
    assert error_of(database)[0] == 400
    assert error_of(renamed)[:2] == (404, "NoSuchTableException")
    assert app.lake.databases() == ["shop"]
    assert app.lake.tables() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": {"type": "struct"}}, "$.schema.fields"),
        ({"schema": "struct"}, "$.schema"),
        ({"schema": None}, "$.schema"),
        ({"properties": {"ledger.formats": "paimon"}}, "ledger.formats"),
        ({"properties": {"a": 1}}, "$.properties"),
        ({"properties": {"format-version": "x"}}, "format-version"),
        ({"properties": {"format-version": "99"}}, "format-version"),
        ({"location": "/etc/shop"}, "outside of"),
        ({"location": "file:///etc/../etc/shop"}, "outside of"),
        ({"location": "https://example.org/shop"}, "outside of"),
        ({"location": "zip::/lake/shop"}, "zip::/lake/shop"),
        ({"partition-spec": {"fields": [{"name": "a", "transform": "year", "source-id": 5}]}}, "5"),
        (
            {"partition-spec": {"fields": [{"name": "a", "transform": "year", "source-id": 7}]}},
            "year",
        ),
        ({"partition-spec": {"fields": "all"}}, "partition-spec"),
        ({"write-order": {"fields": [{"transform": "identity"}]}}, "write-order"),
    ],
)
def test_a_table_that_cannot_be_is_not_created(
    app: Application, change: dict[str, Any], said: str
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    body = {"name": "orders", "schema": SCHEMA, **change}
    status, _, message = error_of(app.post("namespaces/shop/tables", body))

    assert status == 400
    assert said in message
    assert app.lake.tables() == []


def test_types_nested_too_deeply_are_rejected(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    kind: Any = "int"
    for number in range(66):
        kind = {
            "type": "list",
            "element-id": number + 2,
            "element": kind,
            "element-required": True,
        }
    fields = [{"id": 1, "name": "a", "type": kind, "required": False}]
    body = {"name": "orders", "schema": {"type": "struct", "fields": fields}}

    status, _, message = error_of(app.post("namespaces/shop/tables", body))
    assert status == 400
    assert "nested more than 64 deep" in message


@pytest.mark.parametrize(
    ("location", "status"),
    [
        ("/etc/passwd", 400),
        ("file:///etc/passwd", 400),
        ("s3://elsewhere/v1.metadata.json", 400),
        ("http://127.0.0.1:1/v1.metadata.json", 400),
        ("v1.metadata.json", 400),
        ("{lake}/../secret.json", 400),
        ("{lake}/gone.metadata.json", 404),
        ("{lake}/_ledger/ledger.json", 400),
    ],
)
def test_only_metadata_files_of_allowed_locations_are_registered(
    app: Application, tmp_path: Path, location: str, status: int
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    (tmp_path / "secret.json").write_text("{}")
    body = {"name": "orders", "metadata-location": location.format(lake=app.lake.url)}
    answer = app.post("namespaces/shop/register", body)

    assert error_of(answer)[0] == status
    assert app.lake.tables() == []


def test_a_linked_metadata_file_outside_of_the_ledger_is_not_read(
    app: Application, tmp_path: Path
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "lake" / "link.json").symlink_to(tmp_path / "secret.json")
    body = {"name": "orders", "metadata-location": f"{app.lake.url}/link.json"}

    assert error_of(app.post("namespaces/shop/register", body))[0] == 400


def test_a_reason_of_unbounded_length_or_with_control_characters_is_rejected(
    app: Application,
) -> None:
    app.create()

    assert error_of(app.commit(set_property("a", "b"), x_lakeledger_message="x" * 5000))[0] == 400
    assert error_of(app.commit(set_property("a", "b"), x_lakeledger_message="a\tb"))[0] == 400
    assert error_of(app.commit(set_property("lakeledger.message", "x" * 5000)))[0] == 400


def test_unknown_paths_and_methods_have_the_protocols_errors(app: Application) -> None:
    for path in ("v2/config", "v1/namespaces/shop/tables/orders/", "v1/oauth/tokens", "v1//"):
        assert error_of(app.http.get(f"/{path}"))[0] == 404
    assert error_of(app.http.put("/v1/namespaces"))[0] == 405


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(json_values)
def test_nesting_is_counted_without_decoding(value: Any) -> None:
    depth = depth_of(value)

    for text in (msgspec.json.encode(value), json.dumps(value, indent=1).encode()):
        assert not is_nested_deeper_than(text, depth)
        assert depth == 0 or is_nested_deeper_than(text, depth - 1)


@pytest.mark.parametrize(
    ("part", "times"),
    [
        (b'"', 1_000_001),
        (b'\\"', 500_000),
        (b'"\\', 500_001),
        (b'["', 500_001),
        (b'"a', 500_001),
        (b'""[', 300_001),
        (b"[]", 500_000),
    ],
)
def test_the_time_to_count_nesting_is_linear_in_the_text(part: bytes, times: int) -> None:
    begun_s = time.process_time()
    is_nested_deeper_than(b'["' + part * times, 200)
    is_nested_deeper_than(part * times, 200)

    assert time.process_time() - begun_s < 5


@pytest.mark.parametrize("text", [b"]", b"[]]", b"}{", b"[", b'["]', b'["\\', b'["a\\"]'])
def test_brackets_without_a_counterpart_count_as_too_deep(text: bytes) -> None:
    assert is_nested_deeper_than(text, 200)


@pytest.mark.parametrize("slash", ["%2F", "%2f"])
@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("DELETE", "namespaces/shop{}tables{}orders", 404, "NoSuchNamespaceException"),
        ("GET", "namespaces/shop{}tables{}orders", 404, "NoSuchNamespaceException"),
        ("GET", "namespaces/shop{}tables", 404, "NoSuchNamespaceException"),
        ("POST", "namespaces/shop{}tables{}orders/properties", 404, "NoSuchNamespaceException"),
        ("DELETE", "namespaces/shop/tables/x{}orders", 404, "NoSuchTableException"),
        ("GET", "namespaces/shop{}x/tables/orders", 404, "NoSuchTableException"),
        ("POST", "namespaces/shop/tables/orders{}unregister", 404, "NoSuchTableException"),
        ("GET", "namespaces/shop/views/x{}y", 404, "NoSuchViewException"),
        ("POST", "namespaces/shop{}tables{}orders", 405, "UnsupportedOperationException"),
        ("POST", "namespaces{}shop/properties", 404, "NotFoundException"),
    ],
)
def test_a_slash_in_a_name_reaches_no_other_endpoint(
    app: Application, method: str, path: str, status: int, kind: str, slash: str
) -> None:
    app.create()
    url = "/v1/" + path.replace("{}", slash)
    answer = app.http.request(method, url, json={"requirements": [], "updates": {}})

    assert error_of(answer)[:2] == (status, kind)
    assert app.lake.tables("shop") == ["orders"]
    assert app.lake.table("shop.orders").state.version == 0


@pytest.mark.parametrize("name", ["a%2Fb", "a%2fb", "%2F"])
def test_no_name_has_an_encoded_slash(app: Application, name: str) -> None:
    app.create()
    answers = [
        app.post("namespaces", {"namespace": [name]}),
        app.post("namespaces/shop/tables", {"name": name, "schema": SCHEMA}),
    ]

    assert [error_of(each)[0] for each in answers] == [400, 400]


LEDGER_FOLDER = "{lake}/shop.db/orders/_ledger/log"


@pytest.mark.parametrize(
    ("method_path", "body"),
    [
        (
            "namespaces/shop/tables",
            {"name": "t", "schema": SCHEMA, "location": LEDGER_FOLDER},
        ),
        (
            "namespaces/shop/tables",
            {"name": "t", "schema": SCHEMA, "properties": {"write.metadata.path": LEDGER_FOLDER}},
        ),
        (
            "namespaces/shop/tables",
            {"name": "t", "schema": SCHEMA, "stage-create": True, "location": LEDGER_FOLDER},
        ),
        ("namespaces/shop/register", {"name": "t", "metadata-location": LEDGER_FOLDER}),
        ("namespaces/shop/register-view", {"name": "t", "metadata-location": LEDGER_FOLDER}),
        ("namespaces", {"namespace": ["other"], "properties": {"location": LEDGER_FOLDER}}),
        ("namespaces/shop/properties", {"updates": {"location": LEDGER_FOLDER}}),
    ],
)
def test_a_location_inside_a_folder_of_the_ledger_is_rejected(
    app: Application, method_path: str, body: dict[str, Any]
) -> None:
    app.create()
    sent = json.dumps(body).replace("{lake}", app.lake.url).encode()
    answer = app.send(method_path, sent)

    assert error_of(answer)[0] == 400
    assert "_ledger" in error_of(answer)[2]
    assert app.lake.tables() == ["shop.orders"]
    assert app.lake.databases() == ["shop"]


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-location", "location": LEDGER_FOLDER},
        *(
            set_property(name, LEDGER_FOLDER)
            for name in ("write.metadata.path", "write.data.path", "write.object-storage.path")
        ),
        {
            "action": "set-statistics",
            "statistics": {
                "snapshot-id": 5_000_000_000_000_000_001,
                "statistics-path": f"{LEDGER_FOLDER}/a.puffin",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [],
            },
        },
        {
            "action": "set-partition-statistics",
            "partition-statistics": {
                "snapshot-id": 5_000_000_000_000_000_001,
                "statistics-path": f"{LEDGER_FOLDER}/a.parquet",
                "file-size-in-bytes": 1,
            },
        },
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 5_000_000_000_000_000_002,
                "parent-snapshot-id": 5_000_000_000_000_000_001,
                "sequence-number": 2,
                "timestamp-ms": 0,
                "manifest-list": f"{LEDGER_FOLDER}/snap.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        },
    ],
    ids=lambda update: update["action"],
)
def test_an_update_with_a_location_inside_a_folder_of_the_ledger_is_rejected(
    app: Application, update: dict[str, Any]
) -> None:
    app.create()
    assert app.commit(snapshot(app, 1), set_main(1)).status_code == 200
    sent = json.loads(json.dumps(update).replace("{lake}", app.lake.url))
    answer = app.commit(sent)

    assert error_of(answer)[0] == 400
    assert "_ledger" in error_of(answer)[2]
    assert app.lake.table("shop.orders").state.version == 1
