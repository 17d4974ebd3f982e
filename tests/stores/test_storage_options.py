from __future__ import annotations

from typing import Any

import pytest

from ledger import StoreError
from ledger.stores.services import fsspec_options

ALWAYS = {"use_listings_cache": False, "version_aware": False}

FSSPEC: list[tuple[str, dict[str, Any]]] = [
    ("s3", {"key": "k", "secret": "s", "token": "t", "endpoint_url": "http://e", "anon": False}),
    ("s3", {"client_kwargs": {"region_name": "r"}, "config_kwargs": {"a": 1}, "profile": "p"}),
    ("gs", {"token": "anon", "project": "p", "endpoint_url": "http://e"}),
    ("abfs", {"account_name": "a", "account_key": "k", "connection_string": "c"}),
    ("hdfs", {"AWS_REGION": "r"}),
]


@pytest.mark.parametrize(("scheme", "options"), FSSPEC)
def test_what_fsspec_takes_stays_as_it_is(scheme: str, options: dict[str, Any]) -> None:
    always = {} if scheme == "hdfs" else ALWAYS
    found = fsspec_options(scheme, options)

    assert found == {**options, **always}
    assert fsspec_options(scheme, found) == found


@pytest.mark.parametrize(
    "names",
    [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"),
        ("aws_access_key_id", "aws_secret_access_key", "aws_endpoint", "aws_default_region"),
        ("access_key_id", "secret_access_key", "endpoint_url", "region"),
        ("key", "secret", "endpoint_url", "AWS_REGION"),
    ],
)
def test_the_words_of_delta_rs_mean_the_same_for_s3(names: tuple[str, ...]) -> None:
    given = dict(zip(names, ["k", "s", "http://e", "r"], strict=True))
    needless = {"AWS_ALLOW_HTTP": "true", "conditional_put": "etag"}

    assert fsspec_options("s3", {**given, **needless}) == {
        "key": "k",
        "secret": "s",
        "endpoint_url": "http://e",
        "client_kwargs": {"region_name": "r"},
        **ALWAYS,
    }


def test_the_words_of_delta_rs_mean_the_same_elsewhere() -> None:
    azure = {
        "AZURE_STORAGE_ACCOUNT_NAME": "a",
        "azure_storage_sas_key": "s",
        "AZURE_TENANT_ID": "t",
    }
    assert fsspec_options("abfs", azure) == {
        "account_name": "a",
        "sas_token": "s",
        "tenant_id": "t",
        **ALWAYS,
    }
    google = {"GOOGLE_SERVICE_ACCOUNT": "/key.json"}
    assert fsspec_options("gs", google) == {"token": "/key.json", **ALWAYS}


def test_a_region_joins_the_clients_own_arguments_which_win() -> None:
    given = {"client_kwargs": {"verify": False}, "region": "r"}
    assert fsspec_options("s3", given)["client_kwargs"] == {"region_name": "r", "verify": False}
    given = {"region": "r", "client_kwargs": {"region_name": "mine"}}
    assert fsspec_options("s3", given)["client_kwargs"] == {"region_name": "mine"}


def test_a_truth_written_as_text_is_read() -> None:
    assert fsspec_options("s3", {"skip_signature": "true"})["anon"] is True
    assert fsspec_options("s3", {"anon": "false"})["anon"] is False


def test_two_things_said_about_one_are_refused() -> None:
    with pytest.raises(StoreError, match="two values for 'key'"):
        fsspec_options("s3", {"key": "a", "AWS_ACCESS_KEY_ID": "b"})
    assert fsspec_options("s3", {"key": "a", "AWS_ACCESS_KEY_ID": "a"})["key"] == "a"
