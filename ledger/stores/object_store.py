"""Object store: a bucket with conditional creates, through fsspec or obstore.

Before the first write to a bucket two others show whether it honours the condition: a store that
ignores it answers the second as it answered the first. A race that loses one commit in a thousand
does not show here; that is what the list in `services` is for.

Obstore is used only with `storage_options={"client": "obstore"}`: it finds credentials in other
places than fsspec does. Its names of the options that fsspec's clients take are from the
configuration keys of its S3Store and AzureStore; for Azure's connection strings, "Configure Azure
Storage connection strings".
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

from ledger.model.errors import InvalidNameError, MissingDependencyError, StoreError
from ledger.stores.base import (
    DRAFT_PREFIX,
    Clock,
    Draft,
    check_body,
    check_key,
    clock_of,
    folder_of,
    folder_prefix,
    held,
    is_key,
)
from ledger.stores.concurrency import do_each
from ledger.stores.object_errors import (
    Answer,
    answer_of,
    date_of,
    failure,
    requesting,
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


# A child must not close the connections that its parent talks on, so nothing here is collected.
_inherited: Final[list[Any]] = []


class BucketObjects:
    """The objects below a root, by key.

    Safe to share between threads. A forked child makes itself a client of its own.

    What the server refuses to write is a `StoreError`, and every other failure an `OSError`. They
    name the key and what the server said, and quote nothing of the client's text; that is the
    cause's.

    Args:
        root: Where they are.
    """

    def __init__(self, root: BucketRoot) -> None:
        self.root = root
        self._client: Any = root.service.filesystem(root.options)
        self._process = os.getpid()
        self._refused: Clock | None = None

    @property
    def client(self) -> Any:
        """The fsspec file system, this process's own."""
        if self._process != os.getpid():
            _inherited.append(self._client)
            self._client = self.root.service.filesystem(self.root.options)
            self._process = os.getpid()
        return self._client

    @property
    def options_digest(self) -> str:
        """What tells these options from others, without their values."""
        from fsspec.utils import tokenize

        return str(tokenize(self.root.options))

    def path(self, key: str) -> str:
        """Return an object's path as the client spells it.

        Raises:
            InvalidNameError: The client would take the path for another object's.
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

        A client may send the request again when its answer is lost, and then meets its own
        object: False, though it was this call that wrote it. Who cares, reads.
        """
        path = self.path(key)
        try:
            self.client.pipe_file(path, body, mode="create")
        except Exception as error:
            if answer_of(error) is Answer.EXISTS:
                self._refused = clock_of(date_of(error))
                return False
            raise write_failure(self.root, "create", key, error) from error
        return True

    def clock(self, key: str) -> Clock | None:
        """Return the service's clock, or None when its answers are not dated.

        Args:
            key: That of an object for which a create has just been refused. The refusal tells
                the time, but for a client that keeps no headers: that one asks for the object.
        """
        if self.root.service.scheme != "gs":
            return self._refused
        ask = self.client.call
        with requesting(self.root, "read", key):
            headers, _ = ask("GET", "b/{}/o/{}", self.root.bucket, self.root.prefix + key)
        return clock_of(headers.get("Date"))

    def put(self, key: str, body: bytes) -> None:
        """Put an object whatever was there."""
        path, client = self.path(key), self.client
        try:
            client.pipe_file(path, body)
        except Exception as error:
            raise write_failure(self.root, "put", key, error) from error

    def get(self, keys: Sequence[str], *, end: int | None = None) -> list[bytes | OSError | None]:
        """Return objects' bytes up to `end`, all asked for at once.

        What could not be read stands as an error in its place.
        """
        paths = [self.path(key) for key in keys]
        # A range of everything is one request; cat_file of newer clients asks for the size first.
        ask = self.client.cat_ranges
        with requesting(self.root, "read", keys[0]):
            found = ask(paths, [0] * len(paths), [end] * len(paths))
        return [self._body(key, each) for key, each in zip(keys, found, strict=True)]

    def remove(self, key: str) -> None:
        """Remove an object; one that is absent is fine."""
        path = self.path(key)
        try:
            self.client.rm_file(path)
        except Exception as error:
            if answer_of(error) is not Answer.ABSENT:
                raise failure(self.root, "delete", key, error) from error

    def names(self, prefix: str) -> list[str]:
        """Return all keys that begin with `prefix`, in no order."""
        start = self.root.prefix + prefix
        with requesting(self.root, "list", prefix):
            paths = self.client.find(self.root.bucket, prefix=start)
        # One client lists what begins alike, too.
        names = (path.removeprefix(f"{self.root.bucket}/") for path in paths)
        return [name[len(self.root.prefix) :] for name in names if name.startswith(start)]

    def _body(self, key: str, found: bytes | Exception) -> bytes | OSError | None:
        if isinstance(found, bytes | bytearray | memoryview):
            return bytes(found)
        if answer_of(found) is Answer.ABSENT:
            return None
        told = failure(self.root, "read", key, found)
        told.__cause__ = found
        return told


PROBE: Final = f"_ledger/{DRAFT_PREFIX}self-test"
"""Where the test writes: no commit's key can be it, and no listing shows it."""

_FIRST: Final = b"The self-test of lakeledger wrote this. Deleting it does no harm.\n"
_SECOND: Final = b"A second write went through, so this store loses commits.\n"


class Objects(Protocol):
    """What the test needs of a store."""

    def create(self, key: str, body: bytes) -> bool:
        """Put `body` under `key` unless it exists; False when it does."""

    def get(self, keys: list[str]) -> list[bytes | OSError | None]:
        """Return the bodies under `keys`."""

    def remove(self, key: str) -> None:
        """Remove `key`."""


def self_test(url: str, objects: Objects) -> None:
    """Return when the store at `url` refuses to create what exists.

    The first test of a root writes twice and leaves the probe. To every later one the probe is
    what exists: one refused write shows that this process's client sends the condition, too.

    Raises:
        StoreError: It cannot hold a ledger, or refuses; the message says why and what can.
        OSError: It did not answer; try again.
    """
    if not objects.create(PROBE, _FIRST):
        return
    if objects.create(PROBE, _SECOND) or objects.get([PROBE]) != [_FIRST]:
        with suppress(OSError):
            objects.remove(PROBE)
        raise StoreError(
            f"{url} cannot hold a ledger: its store lets a second write of one key through "
            f"although the first was to be the only one, so commits would get lost. Use {PROVEN}"
        )


_WIDEST: Final = 32
"""How many objects are asked for at the same time, at most."""

# By process: a child that is forked while somebody holds a turn must not wait for it for ever.
_turns: Final[dict[tuple[int, str], threading.Lock]] = {}
_proven: Final[dict[tuple[str, str], Clock | None]] = {}


class ObjectStore:
    """A store below a bucket's folder.

    A write is durable when the service acknowledges it, and reads are strongly consistent, so
    `confirm` is `read`. The first create of a process proves that the store refuses to create
    what exists (`self_test`), which costs one request; opening and reading cost none.

    Nothing locks out other processes: `lock` takes turns inside this one.

    Args:
        root: Where it is.

    Raises:
        MissingDependencyError: The client's library is not installed.
        StoreError: The client refuses the options.
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
        """The root as `s3://`, `gs://`, `abfs://` or `abfss://`."""
        return self._bucket.root.url

    @property
    def is_near(self) -> bool:
        """See `Store.is_near`."""
        return False

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`.

        Raises:
            StoreError: The store does not refuse to create what exists; nothing was written.
        """
        check_key(key)
        check_body(key, body)
        if self._place not in _proven:
            self.ask_clock()
        return self._bucket.create(key, bytes(body))

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See `Store.create_many`; a step's files are sent at the same time."""
        if self._place not in _proven:
            self.ask_clock()
        for step in steps:
            created: set[str] = set()

            def create(file: tuple[str, bytes], created: set[str] = created) -> None:
                if self.create(*file):
                    created.add(file[0])

            do_each(create, step.items())
            for key in step.keys() - created:
                met(key, step[key])

    def clock(self) -> Clock | None:
        """See `Store.clock`.

        A process that has written nothing yet proves the store first, since that tells the time.
        """
        return _proven[self._place] if self._place in _proven else self.ask_clock()

    def ask_clock(self) -> Clock | None:
        """See `Store.ask_clock`; costs a request."""
        self_test(self.url, self._bucket)
        _proven[self._place] = self._bucket.clock(PROBE)
        return _proven[self._place]

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        check_key(key)
        return _body(self._bucket.get([key])[0])

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        try:
            return self.read(key)
        except StoreError as error:
            # The bucket is gone, or the process was forked: neither says what was written before.
            raise OSError(str(error)) from error

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`; bodies that are there may have been read a little ahead.

        The first is asked for alone, since most readers look for the one next commit; then twice
        as many each time. What is absent is asked for again when the iterator gets there.
        """
        start, width = 0, 1
        while start < len(keys):
            ahead = keys[start : start + width]
            for key in ahead:
                check_key(key)
            for number, found in enumerate(self._bucket.get(ahead)):
                yield self.read(ahead[number]) if found is None and number else _body(found)
            start, width = start + width, min(width * 2, _WIDEST)

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        check_key(key)
        return _body(self._bucket.get([key], end=1)[0]) is not None

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
        """See `Store.lock`; takes turns inside this process only."""
        folder = f"{self.url}/{folder_of(key)}"
        return held(_turns.setdefault((os.getpid(), folder), threading.Lock()))


def _body(found: bytes | OSError | None) -> bytes | None:
    if isinstance(found, OSError):
        raise found
    return found
