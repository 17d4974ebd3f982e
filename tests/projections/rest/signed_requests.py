"""Requests as pypaimon's own client signs and sends them, recorded at its HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import requests
from attrs import evolve, frozen
from requests.adapters import BaseAdapter

from projections.rest.authentication import RequestHead
from projections.rest.dlf_keys import AccessKey

_AUTH: Any = pytest.importorskip("pypaimon.api.auth")
DLFDefaultSigner = _AUTH.DLFDefaultSigner
DLFAuthProvider = _AUTH.DLFAuthProvider
HttpClient: Any = pytest.importorskip("pypaimon.api.client").HttpClient
RESTUtil: Any = pytest.importorskip("pypaimon.api.rest_util").RESTUtil
DLFToken: Any = pytest.importorskip("pypaimon.api.token_loader").DLFToken
RESTAuthParameter: Any = pytest.importorskip("pypaimon.api.typedef").RESTAuthParameter

KEY_ID = "LTAI-ann"
SECRET = "5ecret/of+ann="  # noqa: S105 - of a test
REGION = "cn-hangzhou"
KEYS: Mapping[str, AccessKey] = {
    KEY_ID: AccessKey("ann", SECRET),
    "LTAI-bob": AccessKey("bob", "of bob", "t0ken"),
}
SIGNERS = ("default", "openapi", "openapi-v4")
MOUNT = "/paimon"
URI = f"http://lake.example:8181{MOUNT}"


@frozen
class Sent:
    """A request on the wire."""

    head: RequestHead
    body: bytes = b""

    def with_header(self, name: str, value: str) -> Sent:
        return evolve(self, head=evolve(self.head, headers={**self.head.headers, name: value}))

    def without_header(self, name: str) -> Sent:
        kept = {key: value for key, value in self.head.headers.items() if key != name}
        return evolve(self, head=evolve(self.head, headers=kept))


class _Recorder(BaseAdapter):
    """Answers each request, and keeps it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sent] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        url: Any = request.path_url
        path, _, query = url.removeprefix(MOUNT).partition("?")
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        head = RequestHead(str(request.method), path, query, headers)
        body: Any = request.body or b""
        self.sent.append(Sent(head, body))
        answer = requests.Response()
        answer.status_code = 200
        answer.url, answer.request = str(request.url), request
        return answer

    def close(self) -> None:
        pass


@frozen
class Json:
    """A body, as pypaimon's client takes one."""

    content: Mapping[str, Any]

    def to_dict(self) -> Mapping[str, Any]:
        return self.content


def provider(
    signer: str,
    uri: str,
    key_id: str = KEY_ID,
    secret: str = SECRET,
    security_token: str | None = None,
) -> Any:
    token = DLFToken(key_id, secret, security_token)
    return DLFAuthProvider(uri=uri, region=REGION, signing_algorithm=signer, token=token)


def sent_by(
    signer: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    key_id: str = KEY_ID,
    secret: str = SECRET,
    security_token: str | None = None,
) -> Sent:
    """Return a request that pypaimon's client sends: a GET, or a POST with a body."""
    authentication = provider(signer, URI, key_id, secret, security_token)
    client = HttpClient(authentication.uri)
    recorder = _Recorder()
    client.session.mount("http://", recorder)

    def headers_of(parameter: Any) -> Any:
        return authentication.merge_auth_header({}, parameter)

    if body is not None:
        client.post(path, Json(body), headers_of)
    elif query is not None:
        client.get_with_params(path, dict(query), None, headers_of)
    else:
        client.get(path, None, headers_of)
    (found,) = recorder.sent
    return found
