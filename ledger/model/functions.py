"""Functions of a database: parameters, options, and one definition for each engine.

The ledger records definitions and never opens or runs them.

Source: Paimon's Function and FunctionDefinition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen
from msgspec import Struct

from ledger.model.schema import as_texts
from ledger.model.types import DataField


class FunctionFileResource(
    Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True
):
    """A file that holds a function's code, such as a jar."""

    resource_type: str
    uri: str


class _Definition(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """A function's definition for one engine."""


class FileFunctionDefinition(_Definition, frozen=True, tag="file"):
    """A function in a class of files of code."""

    file_resources: tuple[FunctionFileResource, ...] = ()
    language: str | None = None
    class_name: str | None = None
    function_name: str | None = None


class SqlFunctionDefinition(_Definition, frozen=True, tag="sql"):
    """A function as an SQL expression.

    Example:
        >>> SqlFunctionDefinition("length * width").definition
        'length * width'
    """

    definition: str


class LambdaFunctionDefinition(_Definition, frozen=True, tag="lambda"):
    """A function as an expression of a programming language."""

    definition: str
    language: str | None = None


FunctionDefinition = FileFunctionDefinition | SqlFunctionDefinition | LambdaFunctionDefinition


def _as_parameters(values: Iterable[DataField] | None) -> tuple[DataField, ...] | None:
    return None if values is None else tuple(values)


def _as_definitions(values: Mapping[str, FunctionDefinition]) -> dict[str, FunctionDefinition]:
    return dict(values)


@frozen(kw_only=True)
class Function:
    """A function: parameters and definitions.

    Attributes:
        input_params: Its parameters; None where they are not declared.
        return_params: The columns of its result; None where they are not declared.
        deterministic: Whether equal arguments give equal results.
        definitions: One definition for each engine, by a name such as `spark`.
        comment: None when it has none.
        options: Function options.

    Example:
        >>> Function(definitions={"trino": SqlFunctionDefinition("a * b")}).deterministic
        False
    """

    input_params: tuple[DataField, ...] | None = field(default=None, converter=_as_parameters)
    return_params: tuple[DataField, ...] | None = field(default=None, converter=_as_parameters)
    deterministic: bool = False
    definitions: Mapping[str, FunctionDefinition] = field(
        factory=dict, converter=_as_definitions, hash=False
    )
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
