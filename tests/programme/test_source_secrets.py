"""Credentials in what a source's metadata says: no event, error or log line holds them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger.model.errors import LedgerError
from ledger.model.messages.credentials import credentials_in
from tests.programme.test_secrets import SECRET, told_by
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
        shown = told_by(
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
    found = credentials_in(json.dumps({"text": inner}))
    assert found is not None
    assert SECRET not in found


def test_a_long_text_is_looked_through_in_one_pass() -> None:
    # A scheme, a user or a query that never ends would take minutes if each began a new search.
    for text in ("a" * 1_000_000, "a://" * 250_000, "s3://b/" + "?" * 1_000_000, "@" * 1_000_000):
        assert credentials_in(text) is None


def test_an_import_says_which_file_carries_credentials(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", author="t")
    source = iceberg(tmp_path / "t", location=f"s3://me:{SECRET}@bucket/t")
    with pytest.raises(LedgerError, match="carries a user.*storage_options"):
        lake.import_table("d.t", source)
    assert lake.tables() == []
