"""Two protocols in one application: routes, prefixes, names in paths, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.rest.authentication import TokenHash, bearer_authentication
from tests.projections.rest.application import error_of
from tests.projections.rest.paimon.paimon_application import (
    PaimonApplication,
    paimon_application,
    resource_error,
)


@pytest.mark.parametrize("path", ["/paimon", "/paimon/", "/paimon/v1/x", "/paimon/v1/x/none"])
def test_an_unknown_path_below_a_mount_is_an_error_of_its_protocol(
    paimon: PaimonApplication, path: str
) -> None:
    assert resource_error(paimon.http.get(path)) == (404, None, None)


@pytest.mark.parametrize("path", ["/", "/v1/none", "/paimonx/v1/config"])
def test_an_unknown_path_elsewhere_is_an_error_of_the_protocol_at_the_root(
    paimon: PaimonApplication, path: str
) -> None:
    assert error_of(paimon.http.get(path))[0] == 404


def test_a_method_that_is_not_there_is_an_error_of_the_protocol(paimon: PaimonApplication) -> None:
    answer = paimon.http.put("/paimon/v1/p/databases")

    assert resource_error(answer) == (405, None, None)
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_both_protocols_show_the_same_databases(paimon: PaimonApplication) -> None:
    paimon.create_database("shop")
    paimon.http.post("/v1/namespaces", json={"namespace": ["sales"]})

    assert paimon.get("databases").json()["databases"] == ["sales", "shop"]
    assert paimon.http.get("/v1/namespaces").json()["namespaces"] == [["sales"], ["shop"]]


@pytest.mark.parametrize("prefix", ["lakeledger", "p", "a%2Fb", "a+b", "%25"])
def test_every_prefix_is_accepted(paimon: PaimonApplication, prefix: str) -> None:
    answer = paimon.http.get(f"/paimon/v1/{prefix}/databases")

    assert answer.json() == {"databases": [], "nextPageToken": None}


def test_clients_are_told_a_prefix(paimon: PaimonApplication) -> None:
    config = paimon.http.get("/paimon/v1/config", params={"warehouse": "any"}).json()

    assert config["overrides"] == {"prefix": "lakeledger"}


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("a b", "a+b"), ("a+b", "a%2Bb"), ("ü~", "%C3%BC%7E"), ("a b", "a%20b")],
)
def test_names_in_paths_are_decoded_as_clients_encode_them(
    paimon: PaimonApplication, name: str, encoded: str
) -> None:
    paimon.create(name)

    answer = paimon.http.get(f"/paimon/v1/p/databases/shop/tables/{encoded}")

    assert answer.json()["name"] == name


def test_a_name_with_a_slash_is_one_name_that_does_not_exist(paimon: PaimonApplication) -> None:
    paimon.create()

    answer = paimon.http.get("/paimon/v1/p/databases/shop/tables/orders%2Fsnapshot")

    assert resource_error(answer)[:2] == (404, "TABLE")


def test_a_request_without_a_token_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    tokens = bearer_authentication((TokenHash.of("ann", "secret"),))
    with paimon_application(tmp_path / "lake", authenticate=tokens) as paimon:
        answer = paimon.get("databases")
        allowed = paimon.http.get(
            paimon.url("databases"), headers={"authorization": "Bearer secret"}
        )

    assert resource_error(answer) == (401, None, None)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert allowed.status_code == 200


def test_a_body_that_is_too_large_or_too_deep_is_rejected(paimon: PaimonApplication) -> None:
    deep = b"[" * 300 + b"]" * 300
    answers = [paimon.send("databases", body) for body in (deep, b" " * (1 << 21), b"{", b"\xff")]

    assert [resource_error(each) for each in answers] == [(400, None, None)] * 4
