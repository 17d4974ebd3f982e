"""What cattrs found wrong, as one sentence that names the place in the JSON document."""

from __future__ import annotations

from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    IterableValidationError,
    IterableValidationNote,
)

from ledger.model.errors import InvalidInputError
from projections.dlf.keys import camel_case


def refusal(error: Exception, kind: object, obj: object) -> InvalidInputError:
    """Return the error to raise for what a reader raised: the first problem and where it is.

    Args:
        error: What the reader raised.
        kind: What was to be read.
        obj: What it was to be read from.

    Example:
        >>> refusal(ValueError("$.name: is missing"), str, {}).message
        '$.name: is missing'
    """
    path, cause = _first(error, "$")
    text = cause.args[0] if cause.args else cause
    if isinstance(cause, KeyError):
        return InvalidInputError(f"{path}: is missing")
    if isinstance(cause, RecursionError):
        return InvalidInputError(f"{path}: nests too deep for the stack left here; flatten it")
    if str(text).startswith("$"):
        # The reader of a part says where inside the part: `$.type: ...`.
        return InvalidInputError(f"{path}{str(text)[1:]}")
    if path == "$":
        name = getattr(kind, "__name__", "object of this kind")
        return InvalidInputError(f"$: {obj!r:.80} is no {name}: {text}")
    return InvalidInputError(f"{path}: {text}")


def _first(error: Exception, path: str) -> tuple[str, Exception]:
    if not isinstance(error, BaseValidationError):
        return path, error
    inner, note = _noted(error)[0]
    if isinstance(note, AttributeValidationNote):
        path = f"{path}.{camel_case(note.name)}"
    elif isinstance(note, IterableValidationNote):
        path = f"{path}[{note.index!r}]"
    return _first(inner, path)


def _noted(
    error: BaseValidationError,
) -> list[tuple[Exception, AttributeValidationNote | IterableValidationNote | None]]:
    if isinstance(error, ClassValidationError | IterableValidationError):
        noted, plain = error.group_exceptions()
        return [*noted, *((each, None) for each in plain)]
    return [(each, None) for each in error.exceptions]
