"""Functions. Source: Paimon's REST classes, FunctionDefinition and FunctionChange."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.model.identifier import Identifier
from ledger.model.types import DataField
from projections.dlf.objects.parts import Audited, Page


@frozen
class FunctionFileResource:
    """A file that holds a function's code, such as a jar."""

    resource_type: str
    uri: str


@frozen
class FileFunctionDefinition:
    """A function in a class of files of code."""

    file_resources: tuple[FunctionFileResource, ...]
    language: str | None = None
    class_name: str | None = None
    function_name: str | None = None


@frozen
class SqlFunctionDefinition:
    """A function as an SQL expression.

    Example:
        >>> AddDefinition("trino", SqlFunctionDefinition("length * width")).definition
        SqlFunctionDefinition(definition='length * width')
    """

    definition: str


@frozen
class LambdaFunctionDefinition:
    """A function as an expression of a programming language."""

    definition: str
    language: str | None = None


FunctionDefinition = FileFunctionDefinition | SqlFunctionDefinition | LambdaFunctionDefinition


@frozen
class AddDefinition:
    """Define a function for one more engine."""

    name: str
    definition: FunctionDefinition


@frozen
class UpdateDefinition:
    """Define a function anew for an engine."""

    name: str
    definition: FunctionDefinition


@frozen
class DropDefinition:
    """Take away a function's definition for an engine."""

    name: str


FunctionChange = (
    SetOption | RemoveOption | UpdateComment | AddDefinition | UpdateDefinition | DropDefinition
)
"""What a writer may ask of a function."""


@frozen(kw_only=True)
class CreateFunctionRequest:
    """Create a function; `definitions` are by engine."""

    name: str
    input_params: tuple[DataField, ...] | None = None
    return_params: tuple[DataField, ...] | None = None
    deterministic: bool = False
    definitions: Mapping[str, FunctionDefinition] = field(factory=dict, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen(kw_only=True)
class GetFunctionResponse(Audited):
    """A function."""

    uuid: str
    name: str
    input_params: tuple[DataField, ...] | None = None
    return_params: tuple[DataField, ...] | None = None
    deterministic: bool = False
    definitions: Mapping[str, FunctionDefinition] = field(factory=dict, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterFunctionRequest:
    """Change a function, one change after the other, all or none."""

    changes: tuple[FunctionChange, ...]


@frozen(kw_only=True)
class ListFunctionsResponse(Page):
    """Names of the functions of one database."""

    functions: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListFunctionDetailsResponse(Page):
    """The functions of one database, in full."""

    function_details: tuple[GetFunctionResponse, ...] = ()


@frozen(kw_only=True)
class ListFunctionsGloballyResponse(Page):
    """Full names of functions in any database."""

    functions: tuple[Identifier, ...] = ()
