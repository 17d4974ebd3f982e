"""Objects in one bucket, through fsspec: the requests, and one meaning for what they come to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from ledger.model.errors import InvalidNameError
from ledger.stores.clock import Clock, clock_of
from ledger.stores.objects.answers import (
    Answer,
    answer_of,
    date_of,
    failure,
    requesting,
    write_failure,
)
from ledger.stores.objects.services import BucketRoot

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
