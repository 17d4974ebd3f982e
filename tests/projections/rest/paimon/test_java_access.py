"""Paimon's Java client: its signatures are accepted, and tokens lead it to files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger.log.request import now_millis
from projections.rest.authentication import authentication_by_scheme
from projections.rest.dlf_keys import AccessKey
from projections.rest.dlf_signatures import dlf_authentication
from tests.projections.rest.application import Application, application
from tests.projections.rest.paimon.java_client import ANY_TOKEN, JavaClient
from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_clients import TableSpec
from tests.readers.java_core import PaimonUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IGNORE = False
_KEYS = {"LTAI1": AccessKey("ann", "of 1"), "LTAI2": AccessKey("bob", "of 2", "t")}


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Iterator[PaimonJvm]:
    try:
        with PaimonJvm.running(spark) as found:
            yield found
    except PaimonUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    schemes = dlf_authentication(_KEYS, now_millis)
    authenticate = authentication_by_scheme(schemes)
    with application(tmp_path / "lake", authenticate=authenticate) as found:
        yield found


def client(
    jvm: PaimonJvm, app: Application, key_id: str, token: str | None = None, signer: str = "default"
) -> JavaClient:
    signed = {
        "token.provider": "dlf",
        "dlf.region": "eu-1",
        "dlf.signing-algorithm": signer,
        "dlf.access-key-id": key_id,
        "dlf.access-key-secret": _KEYS[key_id].secret,
    }
    if token is not None:
        signed["dlf.security-token"] = token
    return JavaClient.of_server(jvm, f"{app.http.base_url}/paimon", "lake & co", signed)


@pytest.mark.parametrize("signer", ["default", "openapi"])
def test_requests_of_java_are_accepted(jvm: PaimonJvm, app: Application, signer: str) -> None:
    signed = client(jvm, app, "LTAI1", signer=signer)
    for name in ("shop", "größe", "a b", "x~y"):
        signed.catalog.createDatabase(name, _IGNORE)
        assert signed.catalog.getDatabase(name).name() == name
    found = signed.catalog.listDatabasesPaged(2, "a b", "%")

    assert len(found.getElements()) == 2
    assert [*app.lake.events()][-1].transactions[0].author == "ann"


def test_the_security_token_of_a_key_is_needed(jvm: PaimonJvm, app: Application) -> None:
    client(jvm, app, "LTAI2", "t").create_database()

    with pytest.raises(Exception, match="security token"):
        client(jvm, app, "LTAI2")


def test_java_reaches_files_by_the_token_of_their_table(jvm: PaimonJvm, tmp_path: Path) -> None:
    storage = {f"file://{tmp_path}": {"s3.access-key-id": "ann"}}
    with application(tmp_path / "lake", storage=storage) as app:
        uri = f"{app.http.base_url}/paimon"
        options = {**ANY_TOKEN, "data-token.enabled": "true"}
        reader = JavaClient.of_server(jvm, uri, "lake", options)
        reader.create_database()
        spec = TableSpec({"id": "BIGINT NOT NULL", "name": "STRING"}, (), ["id"], {"bucket": "1"})
        reader.create_table("orders", spec)
        reader.write("orders", [(1, "a"), (2, "b")])
        found = reader.rows("orders")

    assert len(found) == 2
