"""Requests that Paimon's clients sign are accepted as they are, and rejected with any change."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger.log.request import now_millis
from projections.rest.authentication import (
    Caller,
    RequestHead,
    TokenHash,
    authentication_by_scheme,
    bearer_authentication,
)
from projections.rest.dlf_keys import AccessKey
from projections.rest.dlf_signatures import (
    DEFAULT_TOLERANCE_S,
    dlf_authentication,
    parse_acs,
    parse_acs4,
    parse_dlf4,
)
from projections.rest.requests import RequestError
from tests.projections.rest.signed_requests import (
    KEY_ID,
    KEYS,
    SECRET,
    SIGNERS,
    DLFDefaultSigner,
    DLFToken,
    RESTAuthParameter,
    RESTUtil,
    Sent,
    sent_by,
)

AUTHENTICATE = authentication_by_scheme(dlf_authentication(KEYS, now_millis))
TABLE = "/v1/lake/databases/shop/tables/orders"
PARSERS = {"default": parse_dlf4, "openapi": parse_acs, "openapi-v4": parse_acs4}

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
"""Names of databases and tables; a path's `.` and `..` never reach a server."""
QUERIES = st.dictionaries(
    st.sampled_from(["maxResults", "pageToken", "tableNamePattern", "warehouse"]),
    st.text(st.characters(codec="utf-8"), max_size=12),
    min_size=1,
)


def accepted(sent: Sent) -> str | None:
    """Return the principal of a request whose signature and body are accepted."""
    caller = AUTHENTICATE(sent.head)
    caller.check_body(sent.body)
    return caller.principal


def rejection(sent: Sent) -> str:
    """Return the message of a request that is rejected."""
    with pytest.raises(RequestError) as error:
        accepted(sent)
    assert error.value.status == 401
    assert SECRET not in error.value.message
    return error.value.message


@pytest.mark.parametrize("signer", SIGNERS)
@given(names=st.tuples(NAMES, NAMES), content=st.dictionaries(st.text(), st.text()))
def test_requests_of_pypaimon_are_accepted(
    signer: str, names: tuple[str, str], content: dict[str, str]
) -> None:
    database, table = names
    assume(not {*names} & {".", ".."})
    if signer == "openapi":
        assume(not set(database + table) & set("/?"))
    path = "/v1/lake/databases/{}/tables/{}".format(*map(RESTUtil.encode_string, names))

    assert accepted(sent_by(signer, path)) == "ann"
    assert accepted(sent_by(signer, path, body=content)) == "ann"


@pytest.mark.parametrize("signer", SIGNERS)
@given(query=QUERIES)
def test_queries_of_pypaimon_are_accepted(signer: str, query: dict[str, str]) -> None:
    assume(signer != "openapi" or not any("&" in each for each in query.values()))

    assert accepted(sent_by(signer, f"{TABLE}/tags", query=query)) == "ann"


@given(query=QUERIES)
def test_queries_as_java_encodes_them_are_accepted(query: dict[str, str]) -> None:
    sent = sent_by("default", TABLE, query=query)
    now = datetime.now(UTC)  # noqa: TID251 - of the server, too
    signer = DLFDefaultSigner("eu")
    headers = signer.sign_headers("", now, None, "host")
    parameter = RESTAuthParameter("GET", TABLE, "")
    # Java's URLEncoder; pypaimon encodes names in paths the same way, and values otherwise.
    parameter.parameters = {name: RESTUtil.encode_string(query[name]) for name in query}
    token = DLFToken("LTAI-ann", SECRET, None)
    headers["authorization"] = signer.authorization(parameter, token, "host", headers)

    lowered = {name.lower(): value for name, value in headers.items()}
    assert accepted(Sent(evolve(sent.head, headers=lowered))) == "ann"


def test_the_published_example_has_its_published_signature() -> None:
    """Source: Paimon's DLFAuthSignatureTest."""
    body = b'{"name":"database","options":{"a":"b"}}'
    head = RequestHead(
        "POST",
        "/v1/paimon/databases",
        "k2=v2&k1=v1",
        {
            "authorization": "DLF4-HMAC-SHA256 Credential=access-key-id/20231203/cn-hangzhou/"
            "DlfNext/aliyun_v4_request,Signature="
            "c72caf1d40b55b1905d891ee3e3de48a2f8bebefa7e39e4f277acc93c269c5e3",
            "content-type": "application/json",
            "content-md5": base64.b64encode(hashlib.md5(body).digest()).decode(),  # noqa: S324
            "x-dlf-content-sha256": "UNSIGNED-PAYLOAD",
            "x-dlf-date": "20231203T121212Z",
            "x-dlf-security-token": "securityToken",
            "x-dlf-version": "v1",
        },
    )
    keys = {"access-key-id": AccessKey("ann", "access-key-secret")}
    then = datetime(2023, 12, 3, 12, 12, 12, tzinfo=UTC)
    authenticate = dlf_authentication(keys, lambda: int(then.timestamp() * 1000))[
        "dlf4-hmac-sha256"
    ]

    caller = authenticate(head)
    caller.check_body(body)
    assert caller.principal == "ann"


def changed(sent: Sent) -> dict[str, Sent]:
    """Return a request with each of its parts changed."""
    head = sent.head
    return {
        "method": evolve(sent, head=evolve(head, method="DELETE")),
        "path": evolve(sent, head=evolve(head, path=f"{head.path}x")),
        "parent": evolve(sent, head=evolve(head, path=head.path.rpartition("/")[0])),
        "query": evolve(sent, head=evolve(head, query="maxResults=2")),
        "query with": evolve(sent, head=evolve(head, query=f"{head.query}&pageToken=a")),
        "query of one": evolve(sent, head=evolve(head, query="maxResults%3D1%26pageToken=b")),
        "body": evolve(sent, body=sent.body + b" "),
    }


@pytest.mark.parametrize("signer", SIGNERS)
def test_a_request_that_was_changed_is_rejected(signer: str) -> None:
    listed = sent_by(signer, f"{TABLE}/tags", query={"maxResults": "1", "pageToken": "b"})
    posted = sent_by(signer, f"{TABLE}/tags", body={"tagName": "a"})

    assert accepted(listed) == accepted(posted) == "ann"
    for query in ("", f"{listed.head.query}&{listed.head.query}"):
        rejection(evolve(listed, head=evolve(listed.head, query=query)))
    for each in (*changed(listed).values(), *changed(posted).values()):
        rejection(each)
    assert "body" in rejection(evolve(posted, body=b""))
    assert "body" in rejection(evolve(posted, body=b'{"tagName": "b"}'))
    for name in {*posted.head.headers} - {"user-agent", "content-length", "accept-encoding"}:
        kept_with_other_value = signer != "openapi" and name == "accept"
        kept_with_other_value |= signer != "openapi-v4" and name == "host"
        if not kept_with_other_value and name != "connection":
            rejection(posted.with_header(name, f"{posted.head.headers[name]}0"))
            rejection(posted.without_header(name))


@given(
    st.sampled_from(SIGNERS),
    *[st.tuples(st.lists(NAMES, min_size=1, max_size=3), QUERIES)] * 2,
)
def test_two_requests_have_no_signature_in_common(
    signer: str,
    one: tuple[list[str], dict[str, str]],
    two: tuple[list[str], dict[str, str]],
) -> None:
    assume(one != two)
    sent = sent_by(signer, TABLE)

    def texts(names: list[str], query: dict[str, str]) -> set[str]:
        path = "/" + "/".join(map(RESTUtil.encode_string, names))
        encoded = "&".join(f"{key}={RESTUtil.encode_string(query[key])}" for key in query)
        try:
            return {*PARSERS[signer](evolve(sent.head, path=path, query=encoded)).texts}
        except RequestError:
            return set()

    assert not texts(*one) & texts(*two)


@pytest.mark.parametrize("signer", SIGNERS)
@given(distance_s=st.integers(-3 * DEFAULT_TOLERANCE_S, 3 * DEFAULT_TOLERANCE_S))
def test_the_time_of_a_signature_may_differ_by_the_tolerance(signer: str, distance_s: int) -> None:
    sent = sent_by(signer, TABLE)
    signed_at_s = {
        "default": lambda text: datetime.strptime(text, "%Y%m%dT%H%M%S%z"),
        "openapi": parsedate_to_datetime,
        "openapi-v4": datetime.fromisoformat,
    }[signer](
        sent.head.headers[
            {"default": "x-dlf-date", "openapi": "date", "openapi-v4": "x-acs-date"}[signer]
        ]
    ).timestamp()
    authenticate = authentication_by_scheme(
        dlf_authentication(KEYS, lambda: int(signed_at_s + distance_s) * 1000)
    )

    if abs(distance_s) <= DEFAULT_TOLERANCE_S:
        assert authenticate(sent.head).principal == "ann"
    else:
        with pytest.raises(RequestError, match=f"{abs(distance_s)} seconds (before|after)"):
            authenticate(sent.head)


@pytest.mark.parametrize("signer", SIGNERS)
def test_keys_and_security_tokens_are_checked(signer: str) -> None:
    def by(key_id: str, secret: str, security_token: str | None = None) -> Sent:
        return sent_by(signer, TABLE, key_id=key_id, secret=secret, security_token=security_token)

    assert accepted(by(KEY_ID, SECRET, "any")) == "ann"
    assert accepted(by("LTAI-bob", "of bob", "t0ken")) == "bob"
    assert "security token" in rejection(by("LTAI-bob", "of bob"))
    assert "security token" in rejection(by("LTAI-bob", "of bob", "t"))
    wrong = rejection(by(KEY_ID, "guess"))
    assert "dlf.access-key-secret" in wrong
    # Which access keys exist is not shown.
    assert rejection(by("LTAI-eve", SECRET)) == wrong


def test_a_request_may_be_sent_again_within_the_tolerance() -> None:
    """Clients send one again after a status 503, with the signature that it has."""
    sent = sent_by("default", TABLE)

    assert accepted(sent) == accepted(sent) == "ann"


@pytest.mark.parametrize(
    "query", ["a%26b=1", "a b=1", "maxResults=1&maxResults=1", "%6DaxResults%3D=1", "é=1"]
)
@pytest.mark.parametrize("signer", SIGNERS)
def test_parameters_that_could_hide_others_are_rejected(signer: str, query: str) -> None:
    sent = sent_by(signer, TABLE)

    assert "each parameter once" in rejection(evolve(sent, head=evolve(sent.head, query=query)))


def test_names_that_a_signature_does_not_cover_are_rejected() -> None:
    for path in ("/v1/lake/databases/a%2Fb", "/v1/lake/databases/a%3Fmax"):
        assert "dlf.signing-algorithm = default" in rejection(sent_by("openapi", path))
    listed = sent_by("openapi", TABLE, query={"pageToken": "a&b"})
    assert "dlf.signing-algorithm = default" in rejection(listed)


@given(st.text(max_size=200), st.sampled_from(["DLF4-HMAC-SHA256", "acs", "ACS4-HMAC-SHA256"]))
def test_other_headers_are_rejected(text: str, scheme: str) -> None:
    sent = sent_by("default", TABLE)

    rejection(sent.with_header("authorization", f"{scheme} {text}"))
    rejection(sent.with_header("authorization", text))
    rejection(sent.with_header("x-dlf-date", text))
    rejection(sent.with_header("content-md5", text))


def test_the_scheme_selects_the_authentication() -> None:
    tokens = bearer_authentication((TokenHash.of("carol", "secret"),))
    authenticate = authentication_by_scheme(
        {"bearer": tokens, **dlf_authentication(KEYS, now_millis)}
    )

    assert authenticate(sent_by("openapi", TABLE).head).principal == "ann"
    bearer = RequestHead(headers={"authorization": "Bearer secret"})
    assert authenticate(bearer) == Caller("carol")
    with pytest.raises(RequestError, match="no bearer token"):
        authenticate(RequestHead())
