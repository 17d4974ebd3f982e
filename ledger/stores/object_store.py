"""Object store: a bucket with conditional creates, through fsspec or obstore.

Before the first write to a bucket, a self-test writes one key twice: the second write succeeds on a
store that ignores the condition. The self-test does not detect a race that loses one commit in a
thousand; for that, `services` lists the supported services.

Obstore is used only with `storage_options={"client": "obstore"}`: it finds credentials in other
places than fsspec does. Its option names are from the configuration keys of its S3Store and
AzureStore; for Azure's connection strings, "Configure Azure Storage connection strings".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from importlib import import_module
from typing import Any, Final, Protocol

from ledger.model.errors import InvalidNameError, StoreError
from ledger.model.extras import missing_extra_error
from ledger.stores.base import (
    DRAFT_PREFIX,
    Clock,
    Draft,
    check_body,
    check_key,
    clock_from_date,
    folder_of,
    folder_prefix,
    held,
    is_key,
)
from ledger.stores.concurrency import run_concurrently
from ledger.stores.object_errors import (
    Answer,
    classify_failure,
    convert_request_errors,
    date_header_of,
    failure,
    write_failure,
)
from ledger.stores.services import ALWAYS, PROVEN, BucketRoot

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
# Parts of a connection string that are redundant.
_NEEDLESS: Final = {"DefaultEndpointsProtocol", "EndpointSuffix"}


def obstore_options(scheme: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of an fsspec client in obstore's names.

    Args:
        scheme: `s3` or `abfs`.
        options: Options as `fsspec_options` returns them.

    Raises:
        StoreError: One of them has no counterpart.

    Example:
        >>> obstore_options("s3", {"key": "mine", "client_kwargs": {"region_name": "eu-west-1"}})
        {'access_key_id': 'mine', 'region': 'eu-west-1'}
    """
    names, done = _NAMES[scheme], {}
    for name, value in _flatten_options(options):
        if name == "account_host":
            done["endpoint"] = f"https://{value}"
        elif name in names:
            done[names[name]] = str(value).lower() if isinstance(value, bool) else str(value)
        elif name not in _NEEDLESS:
            raise StoreError(
                f'the client "obstore" does not support the storage_option {name!r}; leave it out, '
                'or leave "client" out'
            )
    return done


def _flatten_options(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
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
    """Objects below a root, by key, through obstore; its methods are those of `BucketObjects`.

    Safe to share between threads, but not usable in a forked child, which lacks obstore's threads.

    Raises:
        MissingDependencyError: obstore is not installed.
        StoreError: It does not support these options, or is not proven for this service.
    """

    def __init__(self, root: BucketRoot) -> None:
        self.root = root
        self._process = os.getpid()
        self._client = _client(root)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process makes its own client.
        return ObstoreBucket, (self.root,)

    @property
    def client(self) -> Any:
        """The obstore store.

        Raises:
            StoreError: This process was forked from the one that made it.
        """
        if self._process != os.getpid():
            raise StoreError(
                f"{self.root.url}: obstore does not work in a forked process; start processes with "
                'the method "spawn", or leave "client" out of the storage_options'
            )
        return self._client

    @property
    def options_digest(self) -> str:
        """See `BucketObjects.options_digest`."""
        from fsspec.utils import tokenize

        return str(tokenize("obstore", self.root.options))

    def create(self, key: str, body: bytes) -> bool:
        """See `BucketObjects.create`."""
        client = self.client
        try:
            # A multipart upload could not have the condition.
            client.put(self._object_name(key), body, mode="create", use_multipart=False)
        except Exception as error:
            if classify_failure(error) is Answer.EXISTS:
                return False
            raise write_failure(self.root, "create", key, error) from error
        return True

    def clock(self, key: str) -> Clock | None:
        """See `BucketObjects.clock`; obstore keeps no headers, so the object is rewritten."""
        (body,) = self.get([key])
        if not isinstance(body, bytes):
            return None
        self.put(key, body)
        client = self.client
        with convert_request_errors(self.root, "read", key):
            found = client.head(self._object_name(key))
        return Clock.at(found["last_modified"])

    def put(self, key: str, body: bytes) -> None:
        """See `BucketObjects.put`."""
        client = self.client
        try:
            client.put(self._object_name(key), body, use_multipart=False)
        except Exception as error:
            raise write_failure(self.root, "put", key, error) from error

    def get(self, keys: Sequence[str], *, end: int | None = None) -> list[bytes | OSError | None]:
        """See `BucketObjects.get`."""
        if len(keys) == 1:
            return [self._read_object(keys[0], end)]
        with ThreadPoolExecutor(len(keys)) as pool:
            return list(pool.map(lambda key: self._read_object(key, end), keys))

    def remove(self, key: str) -> None:
        """See `BucketObjects.remove`."""
        try:
            self.client.delete(self._object_name(key))
        except Exception as error:
            if classify_failure(error) is not Answer.ABSENT:
                raise failure(self.root, "delete", key, error) from error

    def names(self, prefix: str) -> list[str]:
        """See `BucketObjects.names`; `prefix` is a folder's."""
        start = self.root.prefix + prefix
        client = self.client
        with convert_request_errors(self.root, "list", prefix):
            pages = list(client.list(prefix=start or None))
        return [each["path"][len(self.root.prefix) :] for page in pages for each in page]

    def _object_name(self, key: str) -> str:
        return self.root.prefix + key

    def _read_object(self, key: str, end: int | None) -> bytes | OSError | None:
        client, name = self.client, self._object_name(key)
        try:
            if end is not None:
                return bytes(client.get_range(name, start=0, end=end))
            return bytes(client.get(name).bytes())
        except Exception as error:  # noqa: BLE001 - returned in the place of the body
            if classify_failure(error) is Answer.ABSENT:
                return None
            read_error = failure(self.root, "read", key, error)
            read_error.__cause__ = error
            return read_error


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
        raise missing_extra_error('the client "obstore" is not installed', "obstore") from error
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
            f"{root.url} cannot be opened: obstore rejected the storage_options {sorted(config)} "
            f"({type(error).__name__}); check their values"
        ) from error


# A child must not close its parent's connections, so inherited clients are never collected.
_inherited: Final[list[Any]] = []


class BucketObjects:
    """Objects below a root, by key, through fsspec.

    Safe to share between threads. A forked child makes its own client.

    A write that the server rejects is a `StoreError`, and every other failure an `OSError`. Their
    messages name the key and the server's status and code; the client's text is only in the cause.

    Args:
        root: The root in the bucket.
    """

    def __init__(self, root: BucketRoot) -> None:
        self.root = root
        self._client: Any = root.service.filesystem(root.options)
        self._process = os.getpid()
        self._refused: Clock | None = None

    @property
    def client(self) -> Any:
        """The fsspec file system of this process."""
        if self._process != os.getpid():
            _inherited.append(self._client)
            self._client = self.root.service.filesystem(self.root.options)
            self._process = os.getpid()
        return self._client

    @property
    def options_digest(self) -> str:
        """Digest that identifies the options without containing their values."""
        from fsspec.utils import tokenize

        return str(tokenize(self.root.options))

    def path(self, key: str) -> str:
        """Return an object's path in the client's form, `bucket/name`.

        Raises:
            InvalidNameError: The client would parse the path as that of another object.
        """
        name = self.root.prefix + key
        path = f"{self.root.bucket}/{name}"
        if tuple(self.client.split_path(path))[:2] != (self.root.bucket, name):
            raise InvalidNameError(
                f"{key!r} cannot be a key in {self.root.url}: {self.root.service.client} reads a "
                "part of it as a version or a query; rename it"
            )
        return path

    def create(self, key: str, body: bytes) -> bool:
        """Put an object on condition that there is none; False when there is one.

        A client may send the request again when its answer is lost, and then finds its own object:
        False, although this call wrote it. Callers that need to know read the object.
        """
        path = self.path(key)
        try:
            self.client.pipe_file(path, body, mode="create")
        except Exception as error:
            if classify_failure(error) is Answer.EXISTS:
                self._refused = clock_from_date(date_header_of(error))
                return False
            raise write_failure(self.root, "create", key, error) from error
        return True

    def clock(self, key: str) -> Clock | None:
        """Return the service's clock, or None when its answers are not dated.

        Args:
            key: The key of an object whose create was just rejected. The time is that of the
                rejection; a client that keeps no headers reads the object instead.
        """
        if self.root.service.scheme != "gs":
            return self._refused
        ask = self.client.call
        with convert_request_errors(self.root, "read", key):
            headers, _ = ask("GET", "b/{}/o/{}", self.root.bucket, self.root.prefix + key)
        return clock_from_date(headers.get("Date"))

    def put(self, key: str, body: bytes) -> None:
        """Put an object, replacing any other."""
        path, client = self.path(key), self.client
        try:
            client.pipe_file(path, body)
        except Exception as error:
            raise write_failure(self.root, "put", key, error) from error

    def get(self, keys: Sequence[str], *, end: int | None = None) -> list[bytes | OSError | None]:
        """Return objects' bytes up to `end`, read concurrently; None for a missing one.

        The error of an object that could not be read is returned in its place.
        """
        paths = [self.path(key) for key in keys]
        # A range of everything is one request; newer clients' cat_file requests the size first.
        ask = self.client.cat_ranges
        with convert_request_errors(self.root, "read", keys[0]):
            found = ask(paths, [0] * len(paths), [end] * len(paths))
        return [self._unpack_body(key, each) for key, each in zip(keys, found, strict=True)]

    def remove(self, key: str) -> None:
        """Remove an object; does nothing if it is absent."""
        path = self.path(key)
        try:
            self.client.rm_file(path)
        except Exception as error:
            if classify_failure(error) is not Answer.ABSENT:
                raise failure(self.root, "delete", key, error) from error

    def names(self, prefix: str) -> list[str]:
        """Return all keys that begin with `prefix`, in no order."""
        start = self.root.prefix + prefix
        with convert_request_errors(self.root, "list", prefix):
            paths = self.client.find(self.root.bucket, prefix=start)
        # One client also lists other keys with a similar prefix.
        names = (path.removeprefix(f"{self.root.bucket}/") for path in paths)
        return [name[len(self.root.prefix) :] for name in names if name.startswith(start)]

    def _unpack_body(self, key: str, found: bytes | Exception) -> bytes | OSError | None:
        if isinstance(found, bytes | bytearray | memoryview):
            return bytes(found)
        if classify_failure(found) is Answer.ABSENT:
            return None
        read_error = failure(self.root, "read", key, found)
        read_error.__cause__ = found
        return read_error


PROBE: Final = f"_ledger/{DRAFT_PREFIX}self-test"
"""Key of the self-test's object: never that of a commit, and not in listings."""

_FIRST: Final = b"The self-test of lakeledger wrote this. Deleting it does no harm.\n"
_SECOND: Final = b"A second write went through, so this store loses commits.\n"


class SelfTestObjects(Protocol):
    """Operations that the self-test needs; `BucketObjects` and `ObstoreBucket` have them."""

    def create(self, key: str, body: bytes) -> bool:
        """Put `body` under `key` unless it exists; False when it does."""

    def get(self, keys: list[str]) -> list[bytes | OSError | None]:
        """Return the bodies under `keys`."""

    def remove(self, key: str) -> None:
        """Remove `key`."""


def check_conditional_create(url: str, objects: SelfTestObjects) -> None:
    """Check that the store at `url` rejects the create of an existing key.

    The first test of a root writes twice and leaves the object. Later tests find it there: one
    rejected write shows that this process's client sends the condition, too.

    Raises:
        StoreError: The store does not reject it, or rejects every write; the message names the
            reason and supported stores.
        OSError: It did not answer.
    """
    if not objects.create(PROBE, _FIRST):
        return
    if objects.create(PROBE, _SECOND) or objects.get([PROBE]) != [_FIRST]:
        with suppress(OSError):
            objects.remove(PROBE)
        raise StoreError(
            f"{url} cannot hold a ledger: its store accepts a second write of a key on condition "
            f"that it does not exist, so commits would get lost. Use {PROVEN}"
        )


_WIDEST: Final = 32
"""Number of objects, at most, that `read_many` reads concurrently."""

# By process: a child that is forked while a lock is held must not wait for it for ever.
_turns: Final[dict[tuple[int, str], threading.Lock]] = {}
_proven: Final[dict[tuple[str, str], Clock | None]] = {}


class ObjectStore:
    """Store below a folder of a bucket.

    A write is durable when the service acknowledges it, and reads are strongly consistent, so
    `confirm` is `read`. The first create of a process runs `check_conditional_create`, one more
    request; opening and reading cost none.

    Other processes are not locked out: `lock` excludes threads of this process only.

    Args:
        root: The root in the bucket.

    Raises:
        MissingDependencyError: The client's library is not installed.
        StoreError: The client rejects the options.
    """

    def __init__(self, root: BucketRoot) -> None:
        self._root = root
        self._bucket = ObstoreBucket(root) if root.library == "obstore" else BucketObjects(root)
        self._place = root.url, self._bucket.options_digest

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[BucketRoot]]:
        # Connections stay in their process.
        return ObjectStore, (self._root,)

    @property
    def url(self) -> str:
        """URL of the root: `s3://`, `gs://`, `abfs://` or `abfss://`."""
        return self._bucket.root.url

    @property
    def is_near(self) -> bool:
        """See `Store.is_near`."""
        return False

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`.

        Raises:
            StoreError: The self-test failed; nothing was written.
        """
        check_key(key)
        check_body(key, body)
        if self._place not in _proven:
            self.ask_clock()
        return self._bucket.create(key, bytes(body))

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See `Store.create_many`; a step's files are sent concurrently."""
        if self._place not in _proven:
            self.ask_clock()
        for step in steps:
            created: set[str] = set()

            def create(file: tuple[str, bytes], created: set[str] = created) -> None:
                if self.create(*file):
                    created.add(file[0])

            run_concurrently(create, step.items())
            for key in step.keys() - created:
                met(key, step[key])

    def clock(self) -> Clock | None:
        """See `Store.clock`.

        A process that has written nothing yet runs the self-test, whose response has the time.
        """
        return _proven[self._place] if self._place in _proven else self.ask_clock()

    def ask_clock(self) -> Clock | None:
        """See `Store.ask_clock`; costs a request."""
        check_conditional_create(self.url, self._bucket)
        _proven[self._place] = self._bucket.clock(PROBE)
        return _proven[self._place]

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        check_key(key)
        return _unpack_body(self._bucket.get([key])[0])

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        try:
            return self.read(key)
        except StoreError as error:
            # The bucket is gone, or the process was forked: an earlier write may be there or not.
            raise OSError(str(error)) from error

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`; existing bodies may have been read a little ahead.

        The first is read on its own, since most callers check for the next commit; then twice as
        many each time. A key that was absent is read again when the iterator gets there.
        """
        start, width = 0, 1
        while start < len(keys):
            ahead = keys[start : start + width]
            for key in ahead:
                check_key(key)
            for number, found in enumerate(self._bucket.get(ahead)):
                yield self.read(ahead[number]) if found is None and number else _unpack_body(found)
            start, width = start + width, min(width * 2, _WIDEST)

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        check_key(key)
        return _unpack_body(self._bucket.get([key], end=1)[0]) is not None

    def replace(self, key: str, body: bytes) -> None:
        """See `Store.replace`."""
        check_key(key)
        check_body(key, body)
        self._bucket.put(key, bytes(body))

    def replace_durably(self, key: str, body: bytes) -> None:
        """See `Store.replace_durably`; a service acknowledges what is durable."""
        self.replace(key, body)

    def keys(self, prefix: str) -> Iterator[str]:
        """See `Store.keys`."""
        return iter(sorted(filter(is_key, self._bucket.names(folder_prefix(prefix)))))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        check_key(key)
        self._bucket.remove(key)

    def walk(self, prefix: str) -> Iterator[str]:
        """See `Store.walk`."""
        return self.keys(prefix)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """See `Store.drafts`; bodies appear at once, so there are none."""
        folder_prefix(prefix)
        return iter(())

    def discard(self, draft: Draft) -> None:
        """See `Store.discard`."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        """See `Store.lock`; excludes threads of this process only."""
        folder = f"{self.url}/{folder_of(key)}"
        return held(_turns.setdefault((os.getpid(), folder), threading.Lock()))


def _unpack_body(found: bytes | OSError | None) -> bytes | None:
    if isinstance(found, OSError):
        raise found
    return found
