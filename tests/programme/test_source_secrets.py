"""Credentials in what a source's metadata says: no event, error or log line holds them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import LedgerError
from ledger.model.credentials import carries_credentials, find_credentials, shown
from tests.programme.test_secrets import SECRET, shown_by
from tests.test_foreign_urls import added, delta, iceberg, with_log

URLS = (
    f"s3://me:{SECRET}@bucket/a.parquet",
    f"s3a://{SECRET}@bucket/a.parquet",
    f"s3://bucket/a.parquet?X-Amz-Signature={SECRET}",
    f"gs://bucket/a.parquet?X-Goog-Signature={SECRET}",
    f"abfss://c:{SECRET}@account.dfs.core.windows.net/a.parquet",
    f"abfss://c@account.dfs.core.windows.net/a.parquet?sv=2&sig={SECRET}",
    f"https://me:{SECRET}@host/a.parquet",
    f"https://host/a.parquet?access_token={SECRET}",
    f"simplecache::s3://me:{SECRET}@bucket/a.parquet",
)


def said(action: str, **facts: Any) -> dict[str, Any]:
    return {action: facts}


def of_delta(change: Callable[[str], tuple[dict[str, Any], ...]]) -> Callable[[Path, str], str]:
    return lambda at, url: delta(at, *change(url))


def with_metadata(at: Path, **changed: Any) -> str:
    place = delta(at)
    log = at / f"_delta_log/{0:020d}.json"
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    for each in lines:
        if "metaData" in each:
            each["metaData"].update(changed)
    log.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return place


def commented(url: str) -> str:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {"comment": f"at {url}"}}
    return json.dumps({"type": "struct", "fields": [field]})


def paimon(at: Path, **changed: Any) -> str:
    (at / "schema").mkdir(parents=True)
    schema = {
        "version": 3,
        "id": 0,
        "fields": [{"id": 0, "name": "id", "type": "BIGINT"}],
        "highestFieldId": 0,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
        "comment": "",
        "timeMillis": 1700000000000,
        **changed,
    }
    (at / "schema/schema-0").write_text(json.dumps(schema))
    return str(at)


STATISTICS = {"numRecords": 1}
FIELDS: dict[str, tuple[str, Callable[[Path, str], str]]] = {
    "location": ("iceberg", lambda at, url: iceberg(at, location=url)),
    "manifest-list": ("iceberg", lambda at, url: iceberg(at, snapshot={"manifest-list": url})),
    "manifests": (
        "iceberg",
        lambda at, url: iceberg(at, snapshot={"manifest-list": None, "manifests": [url]}),
    ),
    "metadata-log": ("iceberg", with_log),
    "properties": ("iceberg", lambda at, url: iceberg(at, properties={"write.data.path": url})),
    "property names": ("iceberg", lambda at, url: iceberg(at, properties={url: "x"})),
    "summary": (
        "iceberg",
        lambda at, url: iceberg(
            at, snapshot={"summary": {"operation": "append", "from": f"read {url}, once"}}
        ),
    ),
    "doc": (
        "iceberg",
        lambda at, url: iceberg(
            at,
            schemas=[
                {
                    "type": "struct",
                    "schema-id": 0,
                    "fields": [
                        {"id": 1, "name": "id", "required": False, "type": "long", "doc": url}
                    ],
                }
            ],
        ),
    ),
    "statistics-path": (
        "iceberg",
        lambda at, url: iceberg(
            at,
            statistics=[
                {
                    "snapshot-id": 5,
                    "statistics-path": url,
                    "file-size-in-bytes": 1,
                    "file-footer-size-in-bytes": 1,
                    "blob-metadata": [],
                }
            ],
        ),
    ),
    "partition statistics": (
        "iceberg",
        lambda at, url: iceberg(
            at,
            **{
                "partition-statistics": [
                    {"snapshot-id": 5, "statistics-path": url, "file-size-in-bytes": 1}
                ]
            },
        ),
    ),
    "add": ("delta", of_delta(lambda url: (added(url, stats=json.dumps(STATISTICS)),))),
    "tags of add": (
        "delta",
        of_delta(
            lambda url: (added("a.parquet", stats=json.dumps(STATISTICS), tags={"from": url}),)
        ),
    ),
    "remove": (
        "delta",
        of_delta(
            lambda url: (
                added(url, stats=json.dumps(STATISTICS)),
                said("remove", path=url, deletionTimestamp=1, dataChange=True),
            )
        ),
    ),
    "deletion vector": (
        "delta",
        of_delta(
            lambda url: (
                added(
                    "a.parquet",
                    stats=json.dumps(STATISTICS),
                    deletionVector={
                        "storageType": "p",
                        "pathOrInlineDv": url,
                        "offset": 1,
                        "sizeInBytes": 1,
                        "cardinality": 1,
                    },
                ),
            )
        ),
    ),
    "configuration": ("delta", lambda at, url: with_metadata(at, configuration={"k": url})),
    "description": ("delta", lambda at, url: with_metadata(at, description=f"see {url}")),
    "comment": ("delta", lambda at, url: with_metadata(at, schemaString=commented(url))),
    "commitInfo": (
        "delta",
        of_delta(
            lambda url: (
                said("commitInfo", timestamp=1, operation="W", operationParameters={"p": url}),
            )
        ),
    ),
    "userMetadata": (
        "delta",
        of_delta(lambda url: (said("commitInfo", timestamp=1, operation="W", userMetadata=url),)),
    ),
    "userName": (
        "delta",
        of_delta(lambda url: (said("commitInfo", timestamp=1, operation="W", userName=url),)),
    ),
    "txn": ("delta", of_delta(lambda url: (said("txn", appId=url, version=1),))),
    "options": ("paimon", lambda at, url: paimon(at, options={"data-file.external-paths": url})),
    "table comment": ("paimon", lambda at, url: paimon(at, comment=f"see {url}")),
    "description of a column": (
        "paimon",
        lambda at, url: paimon(
            at, fields=[{"id": 0, "name": "id", "type": "BIGINT", "description": url}]
        ),
    ),
}


@pytest.mark.parametrize("field", FIELDS)
def test_credentials_of_a_source_are_neither_kept_nor_shown(tmp_path: Path, field: str) -> None:
    format_name, make = FIELDS[field]
    lake = ledger.open(tmp_path / "lake", author="t")
    for number, url in enumerate(URLS):
        source = make(tmp_path / f"{number}", url)
        name = f"d.t{number}"
        shown = shown_by(
            lambda name=name, source=source: lake.import_table(  # type: ignore[misc]
                name, source, format_name=format_name
            )
        )
        assert SECRET not in shown, url
    for path in (tmp_path / "lake").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_link_in_a_comment_comes_in(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    link = "see https://wiki.example/page?id=3 or ask ada@example.com"
    lake.import_table("d.t", paimon(tmp_path / "t", comment=link), format_name="paimon")
    assert lake.table("d.t").at().schema.comment == link


@pytest.mark.parametrize("url", URLS)
def test_credentials_are_found_in_json_within_json(url: str) -> None:
    inner = json.dumps({"a": url}).replace("=", "\\u003d")
    found = find_credentials(json.dumps({"text": inner}))
    assert found is not None
    assert SECRET not in found


def test_a_long_text_is_looked_through_in_one_pass() -> None:
    # A scheme, a user or a query that never ends would take minutes if each began a new search.
    for text in ("a" * 1_000_000, "a://" * 250_000, "s3://b/" + "?" * 1_000_000, "@" * 1_000_000):
        assert find_credentials(text) is None


def test_an_import_says_which_file_carries_credentials(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    source = iceberg(tmp_path / "t", location=f"s3://me:{SECRET}@bucket/t")
    with pytest.raises(LedgerError, match="carries a user.*storage_options"):
        lake.import_table("d.t", source)
    assert not lake.is_begun


SPELLED = (
    f"s3://AKIA:{SECRET}/more+key@bucket/a",
    f"s3://me:{SECRET}?more@bucket/a",
    f"s3:/me:{SECRET}@bucket/a",
    f"s3:////me:{SECRET}@bucket/a",
    f"S3A://me:{SECRET}@bucket/a",
    f"abfss://c:{SECRET}/more@account.dfs.core.windows.net/a",
    f"file://me:{SECRET}@host/a",
    f"s3://bucket/a#X-Amz-Signature={SECRET}",
    f"s3://bucket/a;sig={SECRET}",
    f"s3://bucket/a?sig%3D{SECRET}",
    f"s3://bucket/a%3FX-Amz-Signature%3D{SECRET}",
    f"https://host/a#access_token={SECRET}",
)


@pytest.mark.parametrize("url", SPELLED)
def test_credentials_are_known_however_a_url_is_spelled(url: str) -> None:
    assert carries_credentials(url)
    assert SECRET not in shown(url)
    for text in (url, f"read {url}, once", url.replace("@", "%40").replace(":", "%3A")):
        found = find_credentials(text)
        assert found is not None, text
        assert SECRET not in found


@pytest.mark.parametrize(
    "text",
    [
        f'{{"s3.secret-access-key":"{SECRET}"}}',
        f'{{"fs.s3a.secret.key": "{SECRET}"}}',
        json.dumps({"text": json.dumps({"fs.oss.accessKeySecret": SECRET})}),
        f'{{"adls.sas-token":"{SECRET}"}}',
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET};",
        f"jdbc:sqlserver://host;user=me;password={SECRET}",
        f"s3:\\u002f\\u002fme:{SECRET}\\u0040bucket",
        f"Endpoint=x;SharedAccessSignature={SECRET}",
        f"Endpoint=x;SHAREDACCE\u017f\u017fKEY={SECRET}",
        *(
            f'{{"{name}":"{SECRET}"}}'
            for name in (
                "account_key",
                "Client.Secret",
                "PRIVATEKEY",
                "session-to\u212aen",
            )
        ),
        *(f'{{"my.{name}":"{SECRET}"}}' for name in ("oauth2-token", "session.token", "Password")),
    ],
)
def test_secrets_of_properties_and_escaped_urls_are_known(text: str) -> None:
    found = find_credentials(text)
    assert found is not None
    assert SECRET not in found


PLAIN = (
    *("s3://b/a?b.parquet", "s3://b/a#b", "s3://b/x@y", "s3://b/a;b=c", "s3a://b/t/1:2@3"),
    *("hdfs://nn:8020/p@x", "https://[::1]:80/p@x", "abfss://c@a.dfs.core.windows.net/x@y"),
    *("file:///a@b/c?d=e", "file:/a@b", "/a:b/c@d?e=f", "memory://a@b/c", "C:/Users/x@y"),
    *("s3://b/c=a%3Fb%3Dd/x.parquet", "see https://github.com/a/b#design", "the password: none"),
    *('{"name":"password","type":"string"}', '{"password":"****"}', '{"primary-key":"id"}'),
    '{"path":"s3://b/x","author":"ada@example.com"}',
)


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_like_credentials_comes_in(text: str) -> None:
    assert not carries_credentials(text)
    assert find_credentials(text) is None


def test_texts_made_to_be_slow_are_looked_through_quickly() -> None:
    for text in (
        "https://b/" + "?" * 200_000 + "=",
        "https://b/" + "&sig" * 50_000,
        "\\" * 200_000,
        "ab:" + "/" * 200_000,
        "ab://b:c://" * 20_000,
    ):
        find_credentials(text)
        carries_credentials(text)


def _typed(at: Path, url: str) -> str:
    field = {"name": "id", "type": url, "nullable": True, "metadata": {}}
    return with_metadata(at, schemaString=json.dumps({"type": "struct", "fields": [field]}))


def _escaped(at: Path, url: str) -> str:
    place = with_metadata(at, description=url)
    log = at / f"_delta_log/{0:020d}.json"
    log.write_text(log.read_text().replace(url, url.replace("@", "\\u0040").replace("/", "\\/")))
    return place


QUOTED: dict[str, tuple[str, Callable[[Path, str], str]]] = {
    "type in Delta": ("delta", _typed),
    "escaped description in Delta": ("delta", _escaped),
    "statistics in Delta": (
        "delta",
        lambda at, url: delta(at, added("a", stats=json.dumps({"numRecords": url}))),
    ),
    "type in Iceberg": (
        "iceberg",
        lambda at, url: iceberg(at, schemas=[{"type": "struct", "schema-id": 0, "fields": [url]}]),
    ),
    "ref in Iceberg": (
        "iceberg",
        lambda at, url: iceberg(at, refs={"main": {"snapshot-id": 5, "type": url}}),
    ),
    "type in Paimon": (
        "paimon",
        lambda at, url: paimon(at, fields=[{"id": 0, "name": "id", "type": url}]),
    ),
    "unknown key in Paimon": ("paimon", lambda at, url: paimon(at, **{url: "x"})),
}


@pytest.mark.parametrize("field", QUOTED)
def test_errors_quote_no_credentials_of_a_source(tmp_path: Path, field: str) -> None:
    format_name, make = QUOTED[field]
    url = f"s3://me:{SECRET}@bucket/a.parquet"
    source = make(tmp_path / "t", url)
    lake = ledger.open(tmp_path / "lake", author="t")
    for work in (lake.import_table, lake.plan_import):
        shown = shown_by(lambda work=work: work("d.t", source, format_name=format_name))  # type: ignore[misc]
        assert SECRET not in shown
        assert "carries a user" in shown
    for path in (tmp_path / "lake").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
