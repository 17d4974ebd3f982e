"""A client of Paimon's reaches files in a bucket by the token of their table alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ledger
from tests.projections.rest.rest_servers import ledger_server
from tests.pypaimon_or_skip import CatalogFactory, Schema
from tests.stores.servers.buckets import S3Server, root, seaweedfs

REGION = "eu-west-1"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("bucket")) as server:
        yield server


def iceberg_names(bucket: S3Server) -> Mapping[str, str]:
    return {
        "s3.endpoint": bucket.endpoint,
        "s3.access-key-id": bucket.key,
        "s3.secret-access-key": bucket.secret,
        "s3.region": REGION,
        "s3.path-style-access": "true",
    }


def paimon_names(bucket: S3Server) -> Mapping[str, str]:
    return {
        "fs.s3.endpoint": bucket.endpoint,
        "s3.access-key": bucket.key,
        "s3.secret-key": bucket.secret,
        "s3.region": REGION,
        "s3.path.style.access": "true",
    }


@pytest.mark.parametrize("names", [iceberg_names, paimon_names])
def test_pypaimon_writes_and_reads_by_the_token_of_a_table(
    bucket: S3Server, names: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = root(bucket, f"token/{names.__name__}")
    ledger.open(url, bucket.options).init()
    config = tmp_path / "storage.toml"
    members = "\n".join(f'"{name}" = "{value}"' for name, value in names(bucket).items())
    config.write_text(f'["{url}"]\n{members}\n')
    options = [f"--storage-option={each}" for each in _storage_options(bucket)]
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with ledger_server(
        tmp_path, url, "--insecure", "--storage-config", str(config), *options
    ) as server:
        catalog = CatalogFactory.create(
            {
                "metastore": "rest",
                "uri": f"{server.uri}/paimon",
                "warehouse": "lake",
                "token.provider": "bear",
                "token": "any",
            }
        )
        catalog.create_database("shop", ignore_if_exists=False)
        rows = pa.table({"id": pa.array([1, 2], pa.int64()), "city": ["Oslo", "Rome"]})
        schema = Schema.from_pyarrow_schema(rows.schema)
        catalog.create_table("shop.orders", schema, ignore_if_exists=False)
        table = catalog.get_table("shop.orders")
        builder = table.new_batch_write_builder()
        writer, committer = builder.new_write(), builder.new_commit()
        writer.write_arrow(rows)
        committer.commit(writer.prepare_commit())
        writer.close()
        committer.close()
        read = catalog.get_table("shop.orders").new_read_builder()
        found = read.new_read().to_arrow(read.new_scan().plan().splits())

    assert found.to_pylist() == rows.to_pylist()


def _storage_options(bucket: S3Server) -> list[str]:
    return [
        f"key={bucket.key}",
        f"secret={bucket.secret}",
        f"endpoint_url={bucket.endpoint}",
    ]
