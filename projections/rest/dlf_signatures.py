"""Verification of requests that Paimon's clients sign for DLF (`token.provider` = `dlf`).

Clients have three signers (`dlf.signing-algorithm`), which the scheme of the header Authorization
tells apart: `DLF4-HMAC-SHA256` (default), `acs` (openapi) and `ACS4-HMAC-SHA256` (openapi-v4). Each
signs the method, the path, the query, a time and a digest of the body with the secret of an access
key. So a signature is verified before the body is read, and the body is compared with its digest
before the request does anything.

The signed path is the part of the URL after the client's `uri`. Clients differ in how they encode
names and values; each accepted spelling decodes to the same names and values.

Times may differ from this server's clock by a tolerance. Within it, a recorded request can be sent
again and is accepted: clients themselves send a request again with the same signature after a
status 503, so that signatures cannot be limited to one use. Connections from other machines need
TLS for that.

Source: Paimon's DLFDefaultSigner, DLFOpenApiSigner and RESTAuthParameter; pypaimon's dlf_signer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote_plus

from attrs import field, frozen

from projections.rest.authentication import Authenticate, Caller, RequestHead
from projections.rest.dlf_keys import AccessKey
from projections.rest.requests import RequestError

DEFAULT_TOLERANCE_S: Final = 900
"""Seconds that the time of a signature may differ from the server's clock."""

_SCOPE_END: Final = ("DlfNext", "aliyun_v4_request")
_CREDENTIAL: Final = (
    r"Credential=(?P<key>[^/,\s]{1,128})/(?P<date>[0-9]{8})/(?P<region>[^/,\s]{1,64})"
    r"/DlfNext/aliyun_v4_request"
)
_DLF4: Final = re.compile(rf"{_CREDENTIAL}, ?Signature=(?P<signature>[0-9a-f]{{64}})")
_ACS: Final = re.compile(r"(?P<key>[^:\s]{1,128}):(?P<signature>[A-Za-z0-9+/]{27}=)")
_ACS4: Final = re.compile(
    rf"{_CREDENTIAL}, ?SignedHeaders=(?P<headers>[a-z0-9;-]{{1,2000}}), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_DLF4_HEADERS: Final = (
    "content-md5",
    "content-type",
    "x-dlf-content-sha256",
    "x-dlf-date",
    "x-dlf-security-token",
    "x-dlf-version",
)
_UNSIGNED_BODY: Final = "UNSIGNED-PAYLOAD"
_PARAMETER_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


@frozen
class Signature:
    """A signature of a request, and what it has to be the signature of.

    Attributes:
        key_id: Id of the access key.
        digest: The signature.
        texts: The texts that it may be of: spellings of one request.
        sign: Returns the signature of a text with a secret.
        signed_at_s: The time of the signature, in seconds since 1970.
        security_token: The security token that is signed, if any.
        check_body: Raises if a body is not the one whose digest is signed.
    """

    key_id: str
    digest: bytes = field(repr=False)
    texts: Sequence[str]
    sign: Callable[[str, str], bytes]
    signed_at_s: float
    security_token: str | None = field(repr=False)
    check_body: Callable[[bytes], None]


def dlf_authentication(
    keys: Mapping[str, AccessKey],
    clock: Callable[[], int],
    *,
    tolerance_s: float = DEFAULT_TOLERANCE_S,
) -> dict[str, Authenticate]:
    """Return the authentication by DLF's signatures, by scheme of the header Authorization.

    Args:
        keys: The access keys, by id.
        clock: Returns the time in milliseconds since 1970.
        tolerance_s: Seconds that the time of a signature may differ from it.
    """

    def authenticate(parse: Callable[[RequestHead], Signature], head: RequestHead) -> Caller:
        return verify(parse(head), keys, clock() / 1000, tolerance_s)

    return {
        "dlf4-hmac-sha256": partial(authenticate, parse_dlf4),
        "acs": partial(authenticate, parse_acs),
        "acs4-hmac-sha256": partial(authenticate, parse_acs4),
    }


def verify(
    signature: Signature, keys: Mapping[str, AccessKey], now_s: float, tolerance_s: float
) -> Caller:
    """Return the caller whose signature it is; takes the same time for every wrong one.

    Raises:
        RequestError: It is not valid; the message names the rule.
    """
    key = keys.get(signature.key_id)
    secret = "" if key is None else key.secret
    distance_s = now_s - signature.signed_at_s
    if not abs(distance_s) <= tolerance_s:
        raise _error(
            f"the request was signed {abs(distance_s):.0f} seconds "
            f"{'before' if distance_s > 0 else 'after'} this server's time, and {tolerance_s:g} "
            "are allowed; synchronize the clocks"
        )
    # No early end: the time does not depend on which spelling matches, or how far.
    matches = [
        hmac.compare_digest(signature.digest, signature.sign(secret, text))
        for text in signature.texts
    ]
    # One message, which does not show which access keys exist.
    if key is None or True not in matches:
        raise _error(
            "the access key is unknown, or the signature is not that of this request with its "
            "secret: check dlf.access-key-id and dlf.access-key-secret, and that nothing between "
            "client and server changes the method, path, query or signed headers"
        )
    if key.security_token is not None and not hmac.compare_digest(
        key.security_token.encode(), (signature.security_token or "").encode()
    ):
        raise _error(
            "the access key is accepted with its security token only; check dlf.security-token"
        )
    return Caller(key.principal, signature.check_body)


def parse_dlf4(head: RequestHead) -> Signature:
    """Return the signature of Paimon's default signer.

    Raises:
        RequestError: Something that it consists of is missing or malformed.
    """
    found = _credentials(head, _DLF4, "Credential=KEY/DATE/REGION/DlfNext/aliyun_v4_request")
    time = _header(head, "x-dlf-date")
    signed_at_s = _time_of(time, "%Y%m%dT%H%M%SZ", "x-dlf-date")
    _check_scope_date(found["date"], time[:8])
    signed = {each: head.headers[each].strip() for each in _DLF4_HEADERS if each in head.headers}
    if "content-md5" not in signed:
        # Clients sign both or none: a request without a body has neither.
        signed.pop("content-type", None)
    payload = signed.get("x-dlf-content-sha256", _UNSIGNED_BODY)
    scope = "/".join((found["date"], found["region"], *_SCOPE_END))
    lines = [f"{name}:{value}" for name, value in signed.items()]
    parameters = _parameters(head.query)
    texts = [
        "\n".join(("DLF4-HMAC-SHA256", time, scope, _sha256_hex(canonical)))
        for path in _path_spellings(head.path)
        for query in _query_spellings(parameters)
        for canonical in ["\n".join((head.method, path, query, *lines, payload))]
    ]

    def check_body(body: bytes) -> None:
        _check_md5(head, body)
        if payload != _UNSIGNED_BODY:
            _check_digest(payload, hashlib.sha256(body).hexdigest(), "x-dlf-content-sha256")

    return Signature(
        found["key"],
        bytes.fromhex(found["signature"]),
        texts,
        partial(_sign_in_scope, found["date"], found["region"]),
        signed_at_s,
        signed.get("x-dlf-security-token"),
        check_body,
    )


def parse_acs(head: RequestHead) -> Signature:
    """Return the signature of Paimon's signer `openapi`.

    It signs names and values decoded and without marks between them, so that a name with `/` or
    `?`, or a value with `&`, could be taken for two; such requests are rejected.

    Raises:
        RequestError: Something that it consists of is missing, malformed or ambiguous.
    """
    found = _credentials(head, _ACS, "KEY:SIGNATURE")
    segments = [unquote_plus(each) for each in head.path.split("/")]
    parameters = _parameters(head.query)
    if any(set(each) & set("/?") for each in segments) or any(
        "&" in each for each in parameters.values()
    ):
        raise _error(
            "this signature does not cover a name with '/' or '?', or a value with '&'; use the "
            "option dlf.signing-algorithm = default"
        )
    has_body = "content-md5" in head.headers
    query = _query(parameters, str)
    lines = [
        head.method,
        head.headers.get("accept", ""),
        head.headers.get("content-md5", ""),
        head.headers.get("content-type", "") if has_body else "",
        _header(head, "date"),
        *(f"{name}:{value.strip()}" for name, value in _acs_headers(head)),
        "/".join(segments) + (f"?{query}" if query else ""),
    ]
    return Signature(
        found["key"],
        base64.b64decode(found["signature"]),
        ["\n".join(lines)],
        _sign_sha1,
        _http_time(_header(head, "date")),
        head.headers.get("x-acs-security-token"),
        partial(_check_md5, head),
    )


def parse_acs4(head: RequestHead) -> Signature:
    """Return the signature of pypaimon's signer `openapi-v4`.

    Raises:
        RequestError: Something that it consists of is missing or malformed.
    """
    way = "Credential=KEY/DATE/REGION/DlfNext/aliyun_v4_request,SignedHeaders=...,Signature=..."
    found = _credentials(head, _ACS4, way)
    time = _header(head, "x-acs-date")
    signed_at_s = _time_of(time, "%Y-%m-%dT%H:%M:%SZ", "x-acs-date")
    _check_scope_date(found["date"], time[:10].replace("-", ""))
    names = found["headers"].split(";")
    needed = {"host", "x-acs-content-sha256", *(name for name, _ in _acs_headers(head))}
    if names != sorted(set(names)) or not needed <= {*names} <= head.headers.keys():
        raise _error(
            "SignedHeaders does not list host and each header that begins with x-acs-, in order, "
            "once, and nothing that is missing"
        )
    digest = _header(head, "x-acs-content-sha256")
    headers = "".join(f"{each}:{head.headers[each].strip()}\n" for each in names)
    query = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in sorted(_parameters(head.query).items())
    )
    texts = [
        f"ACS4-HMAC-SHA256\n{_sha256_hex(canonical)}"
        for path in _path_spellings(head.path)
        for canonical in ["\n".join((head.method, path, query, headers, found["headers"], digest))]
    ]

    def check_body(body: bytes) -> None:
        _check_digest(digest, hashlib.sha256(body).hexdigest(), "x-acs-content-sha256")

    return Signature(
        found["key"],
        bytes.fromhex(found["signature"]),
        texts,
        partial(_sign_in_scope, found["date"], found["region"]),
        signed_at_s,
        head.headers.get("x-acs-security-token"),
        check_body,
    )


def _error(message: str) -> RequestError:
    return RequestError(401, message)


def _credentials(head: RequestHead, form: re.Pattern[str], way: str) -> Mapping[str, str]:
    """Return the parts of the header Authorization after its scheme."""
    _, _, text = head.headers.get("authorization", "").partition(" ")
    found = form.fullmatch(text.strip())
    if found is None:
        raise _error(
            f"the header Authorization does not have the form {way} after its scheme; a client's "
            "option token.provider = dlf signs requests"
        )
    return found.groupdict()


def _header(head: RequestHead, name: str) -> str:
    text = head.headers.get(name, "").strip()
    if not text:
        raise _error(f"the request has no header {name}, which the signature needs")
    return text


def _acs_headers(head: RequestHead) -> list[tuple[str, str]]:
    return sorted(each for each in head.headers.items() if each[0].startswith("x-acs-"))


def _check_scope_date(scope: str, signed: str) -> None:
    if scope != signed:
        raise _error("the date of the signature's Credential is not that of its time")


def _time_of(text: str, form: str, name: str) -> float:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _error(f"the header {name} is no time of the form {form}") from None


def _http_time(text: str) -> float:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        raise _error("the header Date is no time, as in: Wed, 16 Apr 2025 03:44:46 GMT") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _parameters(query: str) -> dict[str, str]:
    """Return the parameters of a query, decoded.

    Signers leave names as they are, so that a strange one could hide other parameters.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    found = dict(pairs)
    if len(found) < len(pairs) or not all(map(_PARAMETER_NAME.fullmatch, found)):
        raise _error(
            "the query of a signed request has each parameter once, named by ASCII letters, "
            "digits, '_', '.' and '-'"
        )
    return found


def _query(parameters: Mapping[str, str], encode: Callable[[str], str]) -> str:
    return "&".join(
        f"{name}={encode(value)}" if value else name for name, value in sorted(parameters.items())
    )


def _query_spellings(parameters: Mapping[str, str]) -> list[str]:
    """Return a query as Java's client and as pypaimon sign it."""
    found = (_query(parameters, each) for each in (_form_encode, partial(quote, safe="")))
    return [*dict.fromkeys(found)]


def _path_spellings(path: str) -> list[str]:
    """Return a path as it was sent, and as clients encode its names.

    HTTP libraries decode what needs no encoding, such as `%7E`, after it was signed.
    """
    encoded = "/".join(_form_encode(unquote_plus(each)) for each in path.split("/"))
    return [*dict.fromkeys((path, encoded))]


def _form_encode(text: str) -> str:
    """Return a text as Java's URLEncoder encodes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _sign_in_scope(date: str, region: str, secret: str, text: str) -> bytes:
    """Return the signature of a text by a key that is derived for a day and a region."""
    key = f"aliyun_v4{secret}".encode()
    for each in (date, region, *_SCOPE_END, text):
        key = hmac.digest(key, each.encode("utf-8", "surrogateescape"), "sha256")
    return key


def _sign_sha1(secret: str, text: str) -> bytes:
    return hmac.digest(secret.encode(), text.encode("utf-8", "surrogateescape"), "sha1")


def _check_md5(head: RequestHead, body: bytes) -> None:
    expected = head.headers.get("content-md5")
    if expected is not None:
        digest = hashlib.md5(body, usedforsecurity=False).digest()
        _check_digest(expected.strip(), base64.b64encode(digest).decode(), "Content-MD5")
    elif body:
        raise _error("the request has a body that its signature does not cover: no Content-MD5")


def _check_digest(expected: str, actual: str, name: str) -> None:
    if not hmac.compare_digest(expected.encode(), actual.encode()):
        raise _error(f"the body is not the one that was signed: it does not match {name}")
