"""Data files that cannot be read: an error that names the place, the cause and the next step."""

from __future__ import annotations

import itertools

import pytest

import ledger
from ledger import AlreadyExistsError, LedgerError, NotFoundError, Schema, StoreError, Table
from ledger.files import data_files, read_footers
from ledger.stores.object_errors import Answer, classify_failure, reading
from tests.stores.servers.buckets import BUCKET, S3Server, root

_numbers = itertools.count()
AT_ONCE = {"config_kwargs": {"retries": {"total_max_attempts": 1}, "connect_timeout": 1}}


def orders(server: S3Server) -> Table:
    url = root(server, f"unreadable/{next(_numbers)}")
    lake = ledger.open(url, {**server.options, **AT_ONCE})
    lake.create_database("shop")
    return lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))


def test_an_endpoint_that_nobody_listens_at_is_no_clients_error(moto: S3Server) -> None:
    table = orders(moto)
    options = {**moto.options, **AT_ONCE, "endpoint_url": "http://127.0.0.1:9"}
    said = r"EndpointConnectionError: no answer came; check the network"
    with pytest.raises(StoreError, match=said) as failed:
        data_files(
            [f"s3://{BUCKET}/a.parquet", "b.parquet"],
            state=table.state,
            history=[table.state.schema],
            location=table.location,
            storage_options=options,
        )
    assert str(failed.value).startswith(f"s3://{BUCKET}/a.parquet and 1 more cannot be read: ")
    assert failed.value.__cause__ is not None


def test_credentials_that_do_not_allow_it_are_reported(seaweedfs: S3Server) -> None:
    table = orders(seaweedfs)
    with pytest.raises(StoreError, match=r"403.*credentials do not allow it") as failed:
        data_files(
            [f"s3://{BUCKET}/data/a.parquet"],
            state=table.state,
            history=[table.state.schema],
            location=table.location,
            storage_options={**seaweedfs.options, **AT_ONCE, "secret": "not-the-secret"},
        )
    assert "not-the-secret" not in str(failed.value)


def test_a_file_that_goes_while_it_is_read_does_not_exist(moto: S3Server) -> None:
    import s3fs

    filesystem = s3fs.S3FileSystem(**moto.options)
    with pytest.raises(NotFoundError, match="gone.parquet.*does not exist"):
        read_footers([f"{BUCKET}/gone.parquet"], filesystem=filesystem)


def test_the_other_clients_errors_are_distinguished_by_their_cause() -> None:
    from aiohttp import ClientPayloadError
    from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError
    from botocore.exceptions import NoCredentialsError
    from gcsfs.retry import HttpError
    from google.auth.exceptions import RefreshError

    denied, silent = "credentials do not allow it", "no answer came"
    cases: dict[str, list[Exception]] = {
        denied: [
            HttpError({"code": 403, "message": "?key=secret"}),
            ClientAuthenticationError("?key=secret"),
            NoCredentialsError(),
            RefreshError("?key=secret"),  # type: ignore[no-untyped-call]
            PermissionError("?key=secret"),
        ],
        silent: [
            ServiceRequestError("?key=secret"),
            ClientPayloadError("?key=secret"),
            TimeoutError("?key=secret"),
        ],
        "try again": [HttpError({"code": 503, "message": "?key=secret"})],
    }
    for said, errors in cases.items():
        for error in errors:
            with pytest.raises(StoreError, match=said) as failed, reading("gs://b/a"):
                raise error
            assert str(failed.value).startswith(f"gs://b/a cannot be read: {type(error).__name__}")
            assert "secret" not in str(failed.value)


@pytest.mark.parametrize("error", [TypeError("a bug"), NotFoundError("a"), KeyboardInterrupt()])
def test_what_no_client_raised_is_left_alone(error: BaseException) -> None:
    with pytest.raises(type(error)) as failed, reading("gs://b/a"):
        raise error
    assert failed.value is error
    assert isinstance(error, LedgerError) or not isinstance(failed.value, LedgerError)


def test_what_was_being_handled_when_a_request_failed_says_nothing_of_it() -> None:
    """The errors of the ledger have names that a client's have, too."""
    failed = ConnectionResetError("lost")
    failed.__context__ = AlreadyExistsError("a table")
    assert classify_failure(failed) is Answer.UNKNOWN
