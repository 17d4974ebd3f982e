"""What obstore calls the options that fsspec's clients take.

Source: the configuration keys of obstore's S3Store and AzureStore; for Azure's connection strings
"Configure Azure Storage connection strings".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledger.model.errors import StoreError
from ledger.stores.storage_options import ALWAYS

_S3: Final = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "endpoint_url": "endpoint",
    "region_name": "region",
    "anon": "skip_signature",
}
_AZURE: Final = {
    "account_name": "account_name",
    "account_key": "account_key",
    "sas_token": "sas_key",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "anon": "skip_signature",
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "BlobEndpoint": "endpoint",
    "SharedAccessSignature": "sas_key",
}
_NAMES: Final = {"s3": _S3, "abfs": _AZURE}
# Parts of a connection string that the others say already.
_NEEDLESS: Final = {"DefaultEndpointsProtocol", "EndpointSuffix"}


def obstore_options(scheme: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return fsspec's options as obstore takes them.

    Args:
        scheme: `s3` or `abfs`.
        options: As `fsspec_options` gives them.

    Raises:
        StoreError: One of them has no counterpart.

    Example:
        >>> obstore_options("s3", {"key": "mine", "client_kwargs": {"region_name": "eu-west-1"}})
        {'access_key_id': 'mine', 'region': 'eu-west-1'}
    """
    names, done = _NAMES[scheme], {}
    for name, value in _flat(options):
        if name == "account_host":
            done["endpoint"] = f"https://{value}"
        elif name in names:
            done[names[name]] = str(value).lower() if isinstance(value, bool) else str(value)
        elif name not in _NEEDLESS:
            raise StoreError(
                f'the client "obstore" takes no storage_option {name!r}; leave it out, or leave '
                '"client" out'
            )
    return done


def _flat(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in options.items():
        if name == "connection_string":
            parts = (part.partition("=") for part in str(value).split(";") if part)
            found += ((part, text) for part, _, text in parts)
        elif name == "client_kwargs" and isinstance(value, Mapping):
            found += value.items()
        elif name not in ALWAYS and value is not None:
            found.append((name, value))
    return found
