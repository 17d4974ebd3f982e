"""Validation of public arguments, with errors that name them.

What Python would find out later says nothing about the call: a text is taken apart into letters,
None has no attribute. A check looks at kinds alone, and at nothing inside of long lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import wraps
from pathlib import PurePath
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.types import TOO_MANY_DIGITS, is_endless

P = ParamSpec("P")
R = TypeVar("R")


class Form(Struct, frozen=True):
    """What an argument has to be.

    Attributes:
        what: In words.
        holds: Whether a value is that.
    """

    what: str
    holds: Callable[[Any], bool]

    def or_none(self) -> Form:
        """Return the same, or nothing."""
        return Form(f"{self.what}, or None", lambda value: value is None or self.holds(value))

    def check(self, name: str, value: object) -> None:
        """Refuse a value that is something else.

        Raises:
            InvalidInputError: It names the argument, what was given and what is wanted.
        """
        if not self.holds(value):
            raise InvalidInputError(f"{name}={excerpt(value)} is not {self.what}")
        if isinstance(value, int) and is_endless(value):
            raise InvalidInputError(f"{name}={excerpt(value)} has {TOO_MANY_DIGITS}")


def a(what: str, *kinds: type) -> Form:
    """Return the form of instances of some classes; True and False are no numbers."""
    if bool in kinds:
        return Form(what, lambda value: isinstance(value, kinds))
    return Form(what, lambda value: isinstance(value, kinds) and not isinstance(value, bool))


def one_of(*values: str) -> Form:
    """Return the form of one of some words."""
    # A list cannot be looked up among them.
    return Form(
        f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values
    )


def many(what: str) -> Form:
    """Return the form of several things, which one text or one mapping is not."""
    return Form(
        what,
        lambda value: (
            isinstance(value, (list, tuple))
            or (isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping))
        ),
    )


text = Form("a text that is not empty", lambda value: isinstance(value, str) and value != "")
words = a("a text", str)
whole = a("a whole number", int)
count = Form("a whole number, 0 or more", lambda value: whole.holds(value) and value >= 0)
seconds = Form(
    "a number of seconds, 0 or more",
    lambda value: a("a number", int, float).holds(value) and value >= 0,
)
switch = a("True or False", bool)
mapping = a("a mapping", Mapping)
callback = Form("a function", lambda value: callable(value) and not isinstance(value, type))
moment = a("a datetime, an ISO text or Unix milliseconds", datetime, int, str)
paths = Form(
    "a path or several",
    lambda value: (
        isinstance(value, str | PurePath)
        or (isinstance(value, Iterable) and not isinstance(value, bytes | Mapping))
    ),
)
column = Form(
    "a column's path",
    lambda value: (
        (isinstance(value, str) and value != "")
        or (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and len(value) > 0
            and all(isinstance(each, str) for each in value)
        )
    ),
)
by_name = Form(
    "a mapping by name",
    lambda value: isinstance(value, Mapping) and all(isinstance(each, str) for each in value),
)
names = Form(
    "several texts",
    lambda value: (
        isinstance(value, Sequence | AbstractSet)
        and not isinstance(value, str | bytes)
        and all(isinstance(each, str) for each in value)
    ),
)
texts = Form(
    "a mapping of texts",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(each, str) for pair in value.items() for each in pair)
    ),
)


def path_texts(given: str | PurePath | Iterable[str | PurePath]) -> list[str]:
    """Return one path or name, or several, as texts.

    Raises:
        InvalidInputError: One is none.

    Example:
        >>> from pathlib import PurePosixPath
        >>> path_texts("a.parquet"), path_texts([PurePosixPath("b"), "c"])
        (['a.parquet'], ['b', 'c'])
    """
    if hasattr(given, "__arrow_c_stream__"):
        raise InvalidInputError(
            f"a {type(given).__name__} is rows, and no paths; write it as Parquet first, and name "
            "the file"
        )
    several = [given] if isinstance(given, str | PurePath) else list(given)
    found: list[str] = []
    for each in several:
        is_path: bool = isinstance(each, str | PurePath)
        if not is_path or not str(each):
            raise InvalidInputError(f"{excerpt(each)} is no path or name; give texts")
        found.append(str(each))
    return found


def takes(**forms: Form) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function refuse arguments that are not of a form, by their names.

    Example:
        >>> @takes(count=whole)
        ... def double(count: int) -> int:
        ...     return 2 * count
        >>> double("2")
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: count='2' is not a whole number
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__
        named = enumerate(code.co_varnames[: code.co_argcount])
        checks = [(place, name, forms[name]) for place, name in named if name in forms]

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for place, name, needed in checks:
                if place < len(args):
                    value = args[place]
                    # Most are what they have to be, and no numbers.
                    if isinstance(value, int) or not needed.holds(value):
                        needed.check(name, value)
            for name, value in kwargs.items():
                form = forms.get(name)
                if form is not None:
                    form.check(name, value)
            return function(*args, **kwargs)

        return checked

    return wrap
