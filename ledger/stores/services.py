"""Supported object storage services and their options.

Each client is made from its own class, never looked up by protocol: the registry of fsspec may
contain a wrapper that drops the condition of a create.

Sources: the option names of fsspec's s3fs, gcsfs and adlfs (pandas passes them on), and those of
the Rust crate object_store, which delta-rs and polars take. Names of fsspec are left unchanged.

Clients retry by themselves for a minute and more, each in its own way, and log it. That is right
for a running program, and wrong for a person who mistyped an address.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from importlib import import_module
from threading import Thread
from typing import Any, Final, TypeVar

from attrs import field, frozen

from ledger.locations import FAMILIES
from ledger.model.credentials import shown
from ledger.model.errors import StoreError
from ledger.model.extras import missing_extra_error
from ledger.stores.base import check_path

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
"""Options given to every fsspec client of an object store."""
CLIENT: Final = "client"
"""Storage option that names the client library: `fsspec`, which is the default, or `obstore`."""

# Options of other libraries that these clients do not need, since they know it or it is tested.
_NEEDLESS: Final = {
    CLIENT,
    "allow_http",
    "conditional_put",
    "copy_if_not_exists",
    "s3_allow_unsafe_rename",
    "virtual_hosted_style_request",
}


def fsspec_options(scheme: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return storage options in the names of a scheme's fsspec client.

    Args:
        scheme: `s3`, `gs` or `abfs`; for any other the options are returned unchanged.
        given: Options as fsspec or delta-rs name them.

    Returns:
        The options; for an object store with those that turn off the cache of listings and the
        parsing of versions in paths.

    Raises:
        StoreError: Two of them contradict each other.

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
            raise StoreError(
                f"storage_options have two values for {name!r}, under two names; give one of them"
            )
        if name:
            done[name] = value
    if isinstance(done.get("anon"), str):
        done["anon"] = done["anon"].lower() in {"true", "1"}
    if scheme == "s3" and _REGION in done:
        region = done.pop(_REGION)
        done["client_kwargs"] = {"region_name": region, **done.get("client_kwargs", {})}
    return {**done, **ALWAYS}


def _fsspec_name(scheme: str, option: str) -> str:
    """Return fsspec's name of an option; empty when it does not need the option."""
    prefixes, names = _NAMES[scheme]
    short = option.lower()
    short = short.removeprefix(next((each for each in prefixes if short.startswith(each)), ""))
    return "" if short in _NEEDLESS else names.get(short, option)


def send_body_with_headers(client: Any) -> None:
    """Make an s3fs file system send bodies together with their headers.

    By default it sends a body once the server has asked for it (`Expect: 100-continue`), which
    saves large uploads that are rejected; a commit is small, and would take two round trips instead
    of one. A session that the caller passed is not changed.
    """
    from aiobotocore.session import AioSession
    from botocore.handlers import add_expect_header

    if client.session is None:
        session = AioSession(**client.kwargs)
        session.unregister("before-call.s3", add_expect_header)
        client.session = session


PROVEN: Final = (
    "Amazon S3 or a compatible store that honours If-None-Match (SeaweedFS 4 does), "
    "Google Cloud Storage, Azure Blob Storage, or a local folder"
)
"""Supported stores, for messages that reject another one."""


@frozen
class Service:
    """An object storage service.

    Attributes:
        scheme: The scheme of its canonical URLs.
        extra: The package extra to install, as in `lakeledger[s3]`.
        module: The module that defines the fsspec client.
        client: The client's class.
        title: The name of the service, for messages.
        variable: The environment variable of the endpoint, or of the account.
    """

    scheme: str
    extra: str
    module: str
    client: str
    title: str
    variable: str

    def filesystem(self, options: Mapping[str, Any]) -> Any:
        """Return the client, one per process for the same options.

        Raises:
            MissingDependencyError: Its library is not installed.
            StoreError: It rejects the options.
        """
        try:
            made: Any = getattr(import_module(self.module), self.client)
        except ImportError as error:
            raise missing_extra_error(
                f"{self.scheme}:// needs a library that is not installed or cannot be loaded "
                f"({error})",
                self.extra,
            ) from error
        try:
            client = made(**options)
        except Exception as error:
            # The client's own text may quote a credential.
            raise StoreError(
                f"{self.scheme}:// cannot be opened with the "
                f"storage_options {sorted(options.keys() - ALWAYS.keys())}: "
                f"{self.client} rejected them ({type(error).__name__}); check their values"
            ) from error
        if self.scheme == "s3":
            send_body_with_headers(client)
        return client


# gcsfs.GCSFileSystem itself may be another class, whose create overwrites in zonal buckets.
SERVICES: Final = (
    Service(
        scheme="s3",
        extra="s3",
        module="s3fs.core",
        client="S3FileSystem",
        title="Amazon S3",
        variable="AWS_ENDPOINT_URL",
    ),
    Service(
        scheme="gs",
        extra="gcs",
        module="gcsfs.core",
        client="GCSFileSystem",
        title="Google Cloud Storage",
        variable="STORAGE_EMULATOR_HOST",
    ),
    Service(
        scheme="abfs",
        extra="azure",
        module="adlfs.spec",
        client="AzureBlobFileSystem",
        title="Azure Blob Storage",
        variable="AZURE_STORAGE_ACCOUNT_NAME",
    ),
)

_is_bucket = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]*").fullmatch
_AZURE_HOST: Final = re.compile(r"([a-z0-9]+)\.(?:dfs|blob)\.([a-z0-9.\-]+)").fullmatch


@frozen
class BucketRoot:
    """Location of a ledger's root in an object store.

    Attributes:
        url: Its canonical URL.
        service: The storage service.
        bucket: The bucket or container.
        prefix: The common prefix of all keys below the root; empty, or it ends with a slash.
        options: The options of the fsspec client.
        library: The client library: `fsspec` or `obstore`.
    """

    url: str
    service: Service
    bucket: str
    prefix: str
    options: Mapping[str, Any] = field(repr=False)
    library: str = "fsspec"

    @property
    def endpoint(self) -> str:
        """Address of the service for messages: the one in the options, or the service's name."""
        said = dict(
            each.partition("=")[::2]
            for each in str(self.options.get("connection_string", "")).split(";")
        )
        account = self.options.get("account_name") or said.get("AccountName")
        domain = said.get("EndpointSuffix", "core.windows.net")
        addresses = (
            self.options.get("endpoint_url"),
            said.get("BlobEndpoint"),
            self.options.get("account_host"),
            f"{account}.blob.{domain}" if account else None,
            os.environ.get(self.service.variable),
        )
        return shown(str(next(filter(None, addresses), self.service.title)))


def service_of(scheme: str) -> Service | None:
    """Return the service of a URL's scheme, or None.

    Example:
        >>> service_of("s3a").scheme, service_of("hdfs")
        ('s3', None)
    """
    return next((each for each in SERVICES if scheme in FAMILIES[each.scheme]), None)


def client_of(scheme: str, host: str, storage_options: Mapping[str, Any]) -> Any:
    """Return the fsspec client for files of a bucket, one per process for the same options.

    Args:
        scheme: `s3`, `gs` or `abfs`.
        host: The bucket; for Azure the container, with `@` and its account's host if known.
        storage_options: Options as fsspec or delta-rs name them.

    Raises:
        StoreError: The client rejects the options, or they name another account than the URL.
        MissingDependencyError: Its library is not installed.
    """
    service = next(each for each in SERVICES if each.scheme == scheme)
    options = fsspec_options(scheme, storage_options)
    account = host.partition("@")[2] if scheme == "abfs" else ""
    return service.filesystem(_add_azure_account(account, options) if account else options)


def root_of(service: Service, rest: str, storage_options: Mapping[str, Any]) -> BucketRoot:
    """Return the root that a URL names; `rest` is the part after `scheme://`.

    Raises:
        StoreError: There is no bucket in it, or another account than in the options.
        InvalidNameError: Its path is invalid.

    Example:
        >>> root_of(SERVICES[0], "bucket/lake/", {}).url
        's3://bucket/lake'
    """
    options = fsspec_options(service.scheme, storage_options)
    authority, _, path = rest.partition("/")
    scheme, bucket, at, host = service.scheme, *authority.partition("@")
    if at and scheme == "abfs":
        # With the host in its URL, every engine finds the account; engines need the TLS scheme.
        scheme, options = "abfss", _add_azure_account(host, options)
    elif at:
        raise StoreError(f"{scheme}:// takes no user; write {scheme}://BUCKET/FOLDER")
    if _is_bucket(bucket) is None:
        raise StoreError(f"{bucket!r} is no bucket's name; write {scheme}://BUCKET/FOLDER")
    path = path.removesuffix("/")
    if path:
        check_path(path)
    url = f"{scheme}://{authority}/{path}".removesuffix("/")
    library = storage_options.get(CLIENT, "fsspec")
    if library not in {"fsspec", "obstore"}:
        raise StoreError(
            f"there is no client {library!r}; write fsspec or obstore, or leave it out"
        )
    return BucketRoot(url, service, bucket, f"{path}/" if path else "", options, library)


def _add_azure_account(host: str, options: Mapping[str, Any]) -> dict[str, Any]:
    match = _AZURE_HOST(host)
    if match is None:
        raise StoreError(
            f"{host!r} is no Azure storage account's host; write "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
        )
    account, domain = match.groups()
    named = options.get("account_name", account)
    if named != account:
        raise StoreError(
            f"the URL names the account {account!r}, storage_options {named!r}; name one"
        )
    if domain == "core.windows.net":
        return {**options, "account_name": account}
    return {"account_host": f"{account}.blob.{domain}", **options, "account_name": account}


T = TypeVar("T")

TIMEOUT_S: Final = 6.0


def wait_for_first_answer(
    ask: Callable[[], T],
    url: str,
    storage_options: Mapping[str, Any],
    *,
    timeout_s: float = TIMEOUT_S,
) -> T:
    """Return the result of the first request to a store, with a timeout.

    The timeout applies to object stores; other requests are made directly.

    Args:
        ask: Makes the request.
        url: The store's root URL.
        storage_options: Options of its client.
        timeout_s: The timeout, in seconds.

    Raises:
        StoreError: No answer came within the timeout.
    """
    scheme, mark, rest = url.partition("://")
    service = service_of(scheme.lower()) if mark else None
    if service is None:
        return ask()
    _silence_client_logs(service.module.partition(".")[0])
    answer: Future[T] = Future()
    # A daemon thread, so that the process can exit before the request ends.
    Thread(target=_set_answer, args=(ask, answer), daemon=True).start()
    try:
        return answer.result(timeout=timeout_s)
    except TimeoutError as error:
        if answer.done():
            raise
        root = root_of(service, rest, storage_options)
        raise StoreError(
            f"{root.url}: cannot read '_ledger/ledger.json' at {root.endpoint}: no answer came "
            f"within {timeout_s:g} s; check the network, the address and the credentials"
        ) from error


def _set_answer(ask: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(ask())
    except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for the answer
        answer.set_exception(error)


def _silence_client_logs(package: str) -> None:
    """Keep a client from printing log lines on stderr besides its exception."""
    for name in (package, "azure", "asyncio", "aiohttp", "botocore", "google"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
