"""Lazily computed and lazily decoded values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec

from ledger.model.errors import DamagedLogError

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - written as `property` is
    """A property that is worked out when it is first asked for, and kept in its `__dict__`.

    Like `functools.cached_property`, but without the lock that Python 3.11's holds for all
    instances of a class: a signal handler that commits while its thread computes such a property
    would wait for the committer thread, and that one for the lock. Two threads may both compute
    it for one instance.

    Example:
        >>> class Sum:
        ...     @once
        ...     def value(self) -> int:
        ...         print("working")
        ...         return 2 + 2
        >>> sums = Sum()
        >>> sums.value + sums.value
        working
        8
    """

    def __init__(self, works_out: Callable[[Any], T]) -> None:
        self._works_out = works_out
        self._name = works_out.__name__
        self.__doc__ = works_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        """Return what was worked out; the property itself, asked of the class."""
        if instance is None:
            return self
        # Found there from now on: what stands in an instance goes before what its class has.
        value = instance.__dict__[self._name] = self._works_out(instance)
        return value


def decoded(decoder: msgspec.json.Decoder[T], part: bytes | msgspec.Raw, says: str) -> T:
    """Return what a part of a checkpoint's record holds.

    Args:
        decoder: Of the part.
        part: Its JSON.
        says: What to say that the checkpoint holds, if it is none.

    Raises:
        DamagedLogError: It is none. The record's own check held, so that a wrong writer made it.

    Example:
        >>> decoded(msgspec.json.Decoder(list[int]), b"[1, 2]", "numbers that are none")
        [1, 2]
    """
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise DamagedLogError(
            f"a checkpoint holds {says}: {error}. Delete the folder caches beside the log; it is "
            "made again",
            "caches",
        ) from error
