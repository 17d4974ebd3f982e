"""A server accepts what pypaimon's client signs, next to bearer tokens, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from attrs import evolve

import ledger
from ledger.log.request import now_millis
from ledger.model.errors import InvalidInputError
from projections.rest.authentication import (
    TokenHash,
    add_token,
    authentication_by_scheme,
    bearer_authentication,
)
from projections.rest.dlf_keys import AccessKey, read_key_file
from projections.rest.dlf_signatures import dlf_authentication
from tests.projections.rest.application import Application, application, error_of
from tests.projections.rest.rest_servers import ledger_server
from tests.projections.rest.signed_requests import (
    KEY_ID,
    KEYS,
    MOUNT,
    SECRET,
    SIGNERS,
    HttpClient,
    Json,
    Sent,
    provider,
    sent_by,
)

CREATE = "/v1/namespaces"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    tokens = bearer_authentication((TokenHash.of("carol", "secret"),))
    schemes = {"bearer": tokens, **dlf_authentication(KEYS, now_millis)}
    with application(tmp_path / "lake", authenticate=authentication_by_scheme(schemes)) as found:
        yield found


def answer(app: Application, sent: Sent, mount: str = "") -> httpx.Response:
    """Return the answer to a recorded request, which may have been changed."""
    head = sent.head
    url = f"{app.http.base_url}{mount}{head.path}" + (f"?{head.query}" if head.query else "")
    body = sent.body or None
    return httpx.request(head.method, url, headers=dict(head.headers), content=body)


def post(uri: str, signer: str, path: str, body: dict[str, object]) -> None:
    """Send a request by pypaimon's client."""
    authentication = provider(signer, uri)
    HttpClient(uri).post(
        path, Json(body), lambda parameter: authentication.merge_auth_header({}, parameter)
    )


@pytest.mark.parametrize("signer", SIGNERS)
def test_the_author_is_the_principal_of_the_key(app: Application, signer: str) -> None:
    post(str(app.http.base_url), signer, CREATE, {"namespace": ["zürich"]})
    app.post("namespaces", {"namespace": ["shop"]}, authorization="Bearer secret")

    created, other = [*app.lake.events()][-2:]
    assert (created.transactions[0].author, other.transactions[0].author) == ("ann", "carol")
    assert app.lake.databases() == ["shop", "zürich"]


@pytest.mark.parametrize("signer", SIGNERS)
def test_the_mount_of_a_protocol_is_not_signed(app: Application, signer: str) -> None:
    sent = sent_by(signer, "/v1/config", query={"warehouse": "läke & co"})

    # Paimon's scheme openapi does not say where a value with an ampersand ends.
    assert answer(app, sent, MOUNT).status_code == (401 if signer == "openapi" else 200)
    assert answer(app, sent_by(signer, "/v1/config"), MOUNT).status_code == 200


@pytest.mark.parametrize("signer", SIGNERS)
def test_a_changed_request_changes_nothing(app: Application, signer: str) -> None:
    sent = sent_by(signer, CREATE, body={"namespace": ["shop"]})
    other = evolve(sent, body=sent.body.replace(b"shop", b"evil"))
    later = sent_by(signer, CREATE, body={"namespace": ["late"]})
    for name in ("x-dlf-date", "date", "x-acs-date"):
        if name in later.head.headers:
            past = later.head.headers[name].replace("20", "19", 1)
            later = later.with_header(name, past)

    for each in (
        other,
        later,
        evolve(sent, head=evolve(sent.head, path="/v1/namespaces/shop/tables")),
        evolve(sent, head=evolve(sent.head, query="a=b")),
        evolve(sent, head=evolve(sent.head, method="PUT")),
        sent.without_header("authorization"),
        sent.with_header("authorization", f"{sent.head.headers['authorization']}0"),
    ):
        expected = 405 if each.head.method == "PUT" else 401
        assert answer(app, each.without_header("content-length")).status_code == expected
    assert app.lake.databases() == []
    assert error_of(answer(app, other))[1] == "NotAuthorizedException"
    assert answer(app, sent).status_code == 200


def test_a_body_that_was_not_signed_is_bounded_and_rejected(app: Application) -> None:
    sent = sent_by("default", CREATE, body={"namespace": ["shop"]}).without_header("content-length")

    assert answer(app, evolve(sent, body=b"x" * (2 << 20))).status_code == 400
    bare = sent_by("default", CREATE)
    with_body = evolve(bare, head=evolve(bare.head, method="POST"), body=b"{}")
    assert answer(app, with_body).status_code == 401


def test_the_command_takes_tokens_and_keys(tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", "carol")
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[{KEY_ID}]\nsecret = "{SECRET}"\nprincipal = "ann"\n')
    keys.chmod(0o600)
    url = str(tmp_path / "lake")
    ledger.open(url).init()
    flags = ("--token-file", str(tmp_path / "tokens"), "--dlf-keys", str(keys))
    with ledger_server(tmp_path, url, *flags, "--dlf-tolerance", "60") as server:
        post(server.uri, "default", CREATE, {"namespace": ["shop"]})
        headers = {"authorization": f"Bearer {token}"}
        listed = httpx.get(f"{server.uri}{CREATE}", headers=headers)
        refused = httpx.get(f"{server.uri}{CREATE}")

    assert listed.json()["namespaces"] == [["shop"]]
    assert refused.status_code == 401
    assert [*ledger.open(url).events()][-1].transactions[0].author == "ann"


def key_file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    text = (
        '[LTAI1]\nsecret = "of 1"\nprincipal = "ann"\n'
        '["LTAI.2"]\nsecret = "of 2"\nprincipal = "bob"\nsecurity-token = "t"\n'
    )

    assert read_key_file(key_file(tmp_path / "keys", text)) == {
        "LTAI1": AccessKey("ann", "of 1"),
        "LTAI.2": AccessKey("bob", "of 2", "t"),
    }
    assert "of 1" not in repr(read_key_file(tmp_path / "keys"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_of_keys_that_others_can_use_is_rejected(tmp_path: Path, mode: int) -> None:
    text = '[LTAI1]\nsecret = "hush"\nprincipal = "ann"\n'

    with pytest.raises(InvalidInputError, match=f"mode {mode:04o}.*chmod 600"):
        read_key_file(key_file(tmp_path / "keys", text, mode))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hush",
        'hush = "hush"',
        '[a]\nsecret = "hush"\n',
        '[a]\nsecret = "hush"\nprincipal = "ann"\ntoken = "t"\n',
        '[a]\nsecret = ["hush"]\nprincipal = "ann"\n',
        '[a]\nsecret = ""\nprincipal = "ann"\n',
        '[a]\nsecret = " hush"\nprincipal = "ann"\n',
        '[a]\nsecret = "hush\\n"\nprincipal = "ann"\n',
        '["hush/1"]\nsecret = "hush"\nprincipal = "ann"\n',
        '[a]\nsecret = "hush"\nprincipal = "two words"\n',
    ],
)
def test_a_malformed_file_of_keys_is_rejected_without_its_secrets(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        read_key_file(key_file(tmp_path / "keys", text))
    assert "hush" not in str(error.value)


def test_a_missing_file_of_keys_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_key_file(tmp_path / "nowhere")
