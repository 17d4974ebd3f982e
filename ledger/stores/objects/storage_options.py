"""One dictionary of options for every library: what delta-rs calls by other names than fsspec.

Sources: the option names of fsspec's s3fs, gcsfs and adlfs (pandas passes them on), and those of
the Rust crate object_store, which delta-rs and polars take. A name that is fsspec's stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledger.model.errors import StoreError

_REGION: Final = "region"
_S3: Final = {
    "access_key_id": "key",
    "secret_access_key": "secret",
    "session_token": "token",
    "endpoint": "endpoint_url",
    "endpoint_url": "endpoint_url",
    "region": _REGION,
    "default_region": _REGION,
    "skip_signature": "anon",
}
_GCS: Final = {
    "service_account": "token",
    "service_account_path": "token",
    "application_credentials": "token",
    "skip_signature": "anon",
}
_AZURE: Final = {
    "account_name": "account_name",
    "account_key": "account_key",
    "access_key": "account_key",
    "sas_key": "sas_token",
    "sas_token": "sas_token",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "connection_string": "connection_string",
    "skip_signature": "anon",
}
_NAMES: Final[dict[str, tuple[tuple[str, ...], dict[str, str]]]] = {
    "s3": (("aws_",), _S3),
    "gs": (("google_",), _GCS),
    "abfs": (("azure_storage_", "azure_"), _AZURE),
}
# A listing kept by the client hides what others wrote since, and makes its `exists` say no.
ALWAYS: Final = {"use_listings_cache": False, "version_aware": False}
"""What every client of an object store is told."""
CLIENT: Final = "client"
"""Which client a store is to use: `fsspec`, which is the default, or `obstore`."""

# What others need to be told and these clients know, or find out by the self-test.
_NEEDLESS: Final = {
    CLIENT,
    "allow_http",
    "conditional_put",
    "copy_if_not_exists",
    "s3_allow_unsafe_rename",
    "virtual_hosted_style_request",
}


def fsspec_options(scheme: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as fsspec's client of a scheme takes them.

    Args:
        scheme: `s3`, `gs` or `abfs`; any other: nothing changes.
        given: In the words of fsspec or delta-rs.

    Returns:
        The options; those of an object store also say that nothing is remembered of listings and
        that a path has no version in it.

    Raises:
        StoreError: Two of them say different things about the same.

    Example:
        >>> options = fsspec_options("s3", {"AWS_REGION": "eu-west-1", "anon": "true"})
        >>> options["anon"], options["client_kwargs"]
        (True, {'region_name': 'eu-west-1'})
    """
    if scheme not in _NAMES:
        return dict(given)
    done: dict[str, Any] = {}
    for option, value in given.items():
        name = _fsspec_name(scheme, option)
        if name in done and done[name] != value:
            raise StoreError(f"storage_options say two things about {name!r}; name it once")
        if name:
            done[name] = value
    if isinstance(done.get("anon"), str):
        done["anon"] = done["anon"].lower() in {"true", "1"}
    if scheme == "s3" and _REGION in done:
        region = done.pop(_REGION)
        done["client_kwargs"] = {"region_name": region, **done.get("client_kwargs", {})}
    return {**done, **ALWAYS}


def _fsspec_name(scheme: str, option: str) -> str:
    """Return what fsspec calls an option; empty when it needs none."""
    prefixes, names = _NAMES[scheme]
    short = option.lower()
    short = short.removeprefix(next((each for each in prefixes if short.startswith(each)), ""))
    return "" if short in _NEEDLESS else names.get(short, option)
