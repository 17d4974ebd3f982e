"""Meaning of the clients' own exceptions; the servers' tests show that these are raised."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.stores.object_errors import Answer, classify_failure, refusal
from ledger.stores.services import SERVICES, root_of


def boto(status: int, code: str) -> Exception:
    from botocore.exceptions import ClientError

    answer: Any = {
        "ResponseMetadata": {"HTTPStatusCode": status},
        "Error": {"Code": code, "Message": "already exists, or not"},
    }
    error: Exception = ClientError(answer, "PutObject")
    return error


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("status", "code", "answer"),
    [
        (412, "PreconditionFailed", Answer.EXISTS),
        (409, "ConditionalRequestConflict", Answer.UNKNOWN),
        (404, "NoSuchKey", Answer.ABSENT),
        (404, "404", Answer.ABSENT),
        (404, "NoSuchBucket", Answer.NO_BUCKET),
        (403, "SignatureDoesNotMatch", Answer.DENIED),
        (501, "NotImplemented", Answer.UNSUPPORTED),
        (400, "ExpiredToken", Answer.DENIED),
        (400, "QuotaExceeded", Answer.FULL),
        (507, "XMinioStorageFull", Answer.FULL),
        (507, "", Answer.FULL),
        (400, "EntityTooLarge", Answer.REFUSED),
        (400, "KeyTooLongError", Answer.REFUSED),
        (405, "MethodNotAllowed", Answer.REFUSED),
        (413, "", Answer.REFUSED),
        (400, "RequestTimeout", Answer.UNKNOWN),
        (400, "BadDigest", Answer.UNKNOWN),
        (400, "400", Answer.UNKNOWN),
        (400, "", Answer.UNKNOWN),
        (408, "", Answer.UNKNOWN),
        (429, "TooManyRequests", Answer.UNKNOWN),
        (500, "InternalError", Answer.UNKNOWN),
        (503, "SlowDown", Answer.UNKNOWN),
    ],
)
def test_a_response_of_s3_is_recognized_by_code_and_status(
    status: int, code: str, answer: Answer
) -> None:
    error = boto(status, code)
    assert classify_failure(error) is answer
    assert classify_failure(caused(OSError(22, "exists"), error)) is answer
    assert classify_failure(caused(OSError("ours"), caused(OSError("theirs"), error))) is answer


@pytest.mark.parametrize(
    ("status", "code", "answer"),
    [
        (409, "BlobAlreadyExists", Answer.EXISTS),
        (409, "ContainerBeingDeleted", Answer.UNKNOWN),
        (412, "ConditionNotMet", Answer.EXISTS),
        (412, "LeaseIdMissing", Answer.EXISTS),
        (404, "ContainerNotFound", Answer.NO_BUCKET),
        (404, "BlobNotFound", Answer.ABSENT),
        (403, "AuthorizationFailure", Answer.DENIED),
        (500, "InternalError", Answer.UNKNOWN),
    ],
)
def test_an_answer_of_azure_goes_before_the_class_that_adlfs_gives_it(
    status: int, code: str, answer: Answer
) -> None:
    from azure.core.exceptions import HttpResponseError

    error = HttpResponseError("already exists, or not")
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined]  # as the blob client sets it
    assert classify_failure(error) is answer
    for kind in (FileExistsError, FileNotFoundError):
        wrapped = kind("a")
        wrapped.__context__ = error
        assert classify_failure(wrapped) is answer


@pytest.mark.parametrize(
    ("code", "answer"), [(401, Answer.DENIED), ("503", Answer.UNKNOWN), (None, Answer.UNKNOWN)]
)
def test_a_response_of_gcsfs_is_recognized_by_its_code(code: Any, answer: Answer) -> None:
    from gcsfs.retry import HttpError

    assert classify_failure(HttpError({"code": code, "message": "already exists"})) is answer


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (FileExistsError("a"), Answer.EXISTS),
        (FileNotFoundError("a"), Answer.ABSENT),
        (PermissionError("a"), Answer.DENIED),
        (OSError(17, "exists is what the text says"), Answer.EXISTS),
        (OSError("already exists"), Answer.UNKNOWN),
        (ValueError("412"), Answer.UNKNOWN),
        (TimeoutError(), Answer.UNKNOWN),
        (ConnectionResetError(), Answer.UNKNOWN),
    ],
)
def test_without_an_answer_only_the_class_counts(error: Exception, answer: Answer) -> None:
    assert classify_failure(error) is answer


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = OSError("a"), OSError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify_failure(first) is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("status", "code", "kind", "step"),
    [
        (403, "AccessDenied", "NO_PERMISSION", "allow to get, put and list"),
        (404, "NoSuchBucket", "NO_BUCKET", "there is no bucket 'bucket'; create it"),
        (404, "", "NO_BUCKET", "there is no such bucket; create it"),
        (507, "", "NO_SPACE", "free some or raise it"),
        (413, "EntityTooLarge", "STORE", "see the server's error code"),
        (501, "NotImplemented", "STORE", "no conditional create; use Amazon S3"),
    ],
)
def test_a_refused_write_names_its_reason_and_the_next_step(
    status: int, code: str, kind: str, step: str
) -> None:
    root = root_of(SERVICES[0], "bucket/lake", {})
    refused = refusal(root, "create 'log/0'", caused(OSError("secret"), boto(status, code)))

    assert refused is not None
    assert refused.kind == kind
    assert str(refused).startswith("s3://bucket/lake: cannot create 'log/0': OSError (")
    assert "Nothing was written: " in str(refused)
    assert step in str(refused)
    assert "secret" not in str(refused)


@pytest.mark.parametrize("error", [boto(500, "InternalError"), TimeoutError(), OSError("odd")])
def test_silence_is_no_refusal(error: Exception) -> None:
    assert refusal(root_of(SERVICES[0], "bucket/lake", {}), "create 'a'", error) is None
