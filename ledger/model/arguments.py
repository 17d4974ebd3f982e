"""Validation of public arguments, with errors that name them.

Without these checks Python would fail later, with an error that does not name the argument: a str
is iterated letter by letter, None has no attribute. A check inspects the type of an argument alone,
and never the items of a long list.
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


class ArgumentForm(Struct, frozen=True):
    """Requirement on an argument: a description and a predicate.

    Attributes:
        what: Description of a valid value, for the error message.
        holds: Predicate that returns True for a valid value.
    """

    what: str
    holds: Callable[[Any], bool]

    def or_none(self) -> ArgumentForm:
        """Return the same form that also accepts None."""
        return ArgumentForm(
            f"{self.what}, or None", lambda value: value is None or self.holds(value)
        )

    def check(self, name: str, value: object) -> None:
        """Raise if a value does not have this form.

        Raises:
            InvalidInputError: The value is invalid; the message names the argument, the value and
                the requirement.
        """
        if not self.holds(value):
            raise InvalidInputError(f"{name}={excerpt(value)} is not {self.what}")
        if isinstance(value, int) and is_endless(value):
            raise InvalidInputError(f"{name}={excerpt(value)} has {TOO_MANY_DIGITS}")


def instance_of(what: str, *kinds: type) -> ArgumentForm:
    """Return the form of instances of the given classes; bool does not count as int."""
    if bool in kinds:
        return ArgumentForm(what, lambda value: isinstance(value, kinds))
    return ArgumentForm(
        what, lambda value: isinstance(value, kinds) and not isinstance(value, bool)
    )


def one_of(*values: str) -> ArgumentForm:
    """Return the form of a str that is one of the given values."""
    # The type is checked first: the value may be unhashable.
    return ArgumentForm(
        f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values
    )


def iterable_of(what: str) -> ArgumentForm:
    """Return the form of an iterable of items; a single str, bytes or mapping is rejected."""
    return ArgumentForm(
        what,
        lambda value: (
            isinstance(value, (list, tuple))
            or (isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping))
        ),
    )


text = ArgumentForm(
    "a text that is not empty", lambda value: isinstance(value, str) and value != ""
)
words = instance_of("a text", str)
whole = instance_of("a whole number", int)
count = ArgumentForm("a whole number, 0 or more", lambda value: whole.holds(value) and value >= 0)
seconds = ArgumentForm(
    "a number of seconds, 0 or more",
    lambda value: instance_of("a number", int, float).holds(value) and value >= 0,
)
switch = instance_of("True or False", bool)
mapping = instance_of("a mapping", Mapping)
callback = ArgumentForm("a function", lambda value: callable(value) and not isinstance(value, type))
moment = instance_of("a datetime, an ISO text or Unix milliseconds", datetime, int, str)
instant = instance_of(
    "a version, a text such as 'HEAD~3', 'tag:v1' or 'yesterday', or a datetime", int, str, datetime
)
paths = ArgumentForm(
    "a path or several",
    lambda value: (
        isinstance(value, str | PurePath)
        or (isinstance(value, Iterable) and not isinstance(value, bytes | Mapping))
    ),
)
column = ArgumentForm(
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
by_name = ArgumentForm(
    "a mapping by name",
    lambda value: isinstance(value, Mapping) and all(isinstance(each, str) for each in value),
)
names = ArgumentForm(
    "several texts",
    lambda value: (
        isinstance(value, Sequence | AbstractSet)
        and not isinstance(value, str | bytes)
        and all(isinstance(each, str) for each in value)
    ),
)
texts = ArgumentForm(
    "a mapping of texts",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(each, str) for pair in value.items() for each in pair)
    ),
)


def path_texts(given: str | PurePath | Iterable[str | PurePath]) -> list[str]:
    """Return one path or name, or several, as a list of str.

    Raises:
        InvalidInputError: An item is neither a path nor a name, or is empty.

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


def validate_arguments(**forms: ArgumentForm) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to validate its arguments; each form is given by parameter name.

    Example:
        >>> @validate_arguments(count=whole)
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
                    # Fast path: most arguments are valid and not int.
                    if isinstance(value, int) or not needed.holds(value):
                        needed.check(name, value)
            for name, value in kwargs.items():
                form = forms.get(name)
                if form is not None:
                    form.check(name, value)
            return function(*args, **kwargs)

        return checked

    return wrap
