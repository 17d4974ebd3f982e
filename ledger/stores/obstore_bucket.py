"""Bucket through obstore.

It is asked for by `storage_options={"client": "obstore"}` and never taken by itself: it finds
credentials in other places than fsspec does. What it calls the options that fsspec's clients take
is from the configuration keys of its S3Store and AzureStore; for Azure's connection strings,
"Configure Azure Storage connection strings".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from ledger.model.errors import MissingDependencyError, StoreError
from ledger.stores.clock import Clock
from ledger.stores.object_errors import Answer, answer_of, failure, requesting, write_failure
from ledger.stores.services import ALWAYS, BucketRoot

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


_STORES: Final = {"s3": "S3Store", "abfs": "AzureStore"}
_RETRIES: Final = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}


class ObstoreBucket:
    """The objects below a root, by key; see `Bucket`, whose methods these are.

    Safe to share between threads, and of no use to a forked child: its threads stay behind.

    Raises:
        MissingDependencyError: obstore is not installed.
        StoreError: It does not take these options, or is not proven for this kind of store.
    """

    def __init__(self, root: BucketRoot) -> None:
        self.root = root
        self._process = os.getpid()
        self._client = _client(root)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process has a client of its own.
        return ObstoreBucket, (self.root,)

    @property
    def client(self) -> Any:
        """The obstore store.

        Raises:
            StoreError: This process was forked from the one that made it.
        """
        if self._process != os.getpid():
            raise StoreError(
                f"{self.root.url}: obstore does not work in a forked process; start processes by "
                'spawn, or leave "client" out of the storage_options'
            )
        return self._client

    @property
    def options_digest(self) -> str:
        """See `Bucket.options_digest`."""
        from fsspec.utils import tokenize

        return str(tokenize("obstore", self.root.options))

    def create(self, key: str, body: bytes) -> bool:
        """See `Bucket.create`."""
        client = self.client
        try:
            # More than one request could not be made on a condition.
            client.put(self._name(key), body, mode="create", use_multipart=False)
        except Exception as error:
            if answer_of(error) is Answer.EXISTS:
                return False
            raise write_failure(self.root, "create", key, error) from error
        return True

    def clock(self, key: str) -> Clock | None:
        """See `Bucket.clock`; obstore keeps no headers, so the object is written once more."""
        (body,) = self.get([key])
        if not isinstance(body, bytes):
            return None
        self.put(key, body)
        client = self.client
        with requesting(self.root, "read", key):
            found = client.head(self._name(key))
        return Clock.at(found["last_modified"])

    def put(self, key: str, body: bytes) -> None:
        """See `Bucket.put`."""
        client = self.client
        try:
            client.put(self._name(key), body, use_multipart=False)
        except Exception as error:
            raise write_failure(self.root, "put", key, error) from error

    def get(self, keys: Sequence[str], *, end: int | None = None) -> list[bytes | OSError | None]:
        """See `Bucket.get`."""
        if len(keys) == 1:
            return [self._get(keys[0], end)]
        with ThreadPoolExecutor(len(keys)) as pool:
            return list(pool.map(lambda key: self._get(key, end), keys))

    def remove(self, key: str) -> None:
        """See `Bucket.remove`."""
        try:
            self.client.delete(self._name(key))
        except Exception as error:
            if answer_of(error) is not Answer.ABSENT:
                raise failure(self.root, "delete", key, error) from error

    def names(self, prefix: str) -> list[str]:
        """See `Bucket.names`; `prefix` is a folder's."""
        start = self.root.prefix + prefix
        client = self.client
        with requesting(self.root, "list", prefix):
            pages = list(client.list(prefix=start or None))
        return [each["path"][len(self.root.prefix) :] for page in pages for each in page]

    def _name(self, key: str) -> str:
        return self.root.prefix + key

    def _get(self, key: str, end: int | None) -> bytes | OSError | None:
        client, name = self.client, self._name(key)
        try:
            if end is not None:
                return bytes(client.get_range(name, start=0, end=end))
            return bytes(client.get(name).bytes())
        except Exception as error:  # noqa: BLE001 - it stands in its place
            if answer_of(error) is Answer.ABSENT:
                return None
            told = failure(self.root, "read", key, error)
            told.__cause__ = error
            return told


def _client(root: BucketRoot) -> Any:
    scheme = root.service.scheme
    if scheme not in _STORES:
        raise StoreError(
            f'{root.url}: the client "obstore" is proven for {", ".join(_STORES)} only; leave '
            '"client" out of the storage_options'
        )
    try:
        store = import_module("obstore.store")
    except ImportError as error:
        raise MissingDependencyError(
            'the client "obstore" is not installed: pip install "lakeledger[obstore]"'
        ) from error
    config: Mapping[str, str] = obstore_options(scheme, root.options)
    plain = config.get("endpoint", "").startswith("http://")
    try:
        return getattr(store, _STORES[scheme])(
            root.bucket,
            config=config,
            client_options={"allow_http": plain},
            retry_config=_RETRIES,
        )
    except Exception as error:
        # The client's own text may quote a credential.
        raise StoreError(
            f"{root.url} cannot be opened: obstore refused the storage_options {sorted(config)} "
            f"({type(error).__name__}); look at their values"
        ) from error
