"""Functions as recorded, and the changes that a writer can request of them.

Source: Paimon's FunctionChange.
"""

from msgspec import Struct
from msgspec import field as struct_field

from ledger.events.schema import RemoveOption, RequestedChange, SetOption, UpdateComment
from ledger.model.functions import FunctionDefinition
from ledger.model.types.wire import FieldObject


class FunctionRecord(
    Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """A function's parameters and definitions, as Paimon's Function has them."""

    input_params: tuple[FieldObject, ...] | None = None
    return_params: tuple[FieldObject, ...] | None = None
    deterministic: bool = False
    definitions: dict[str, FunctionDefinition] = struct_field(default_factory=dict)
    comment: str | None = None
    options: dict[str, str] = struct_field(default_factory=dict)


class AddDefinition(RequestedChange, frozen=True, tag="addDefinition"):
    """Add a function's definition for one more engine."""

    name: str
    definition: FunctionDefinition


class UpdateDefinition(RequestedChange, frozen=True, tag="updateDefinition"):
    """Replace a function's definition for an engine."""

    name: str
    definition: FunctionDefinition


class DropDefinition(RequestedChange, frozen=True, tag="dropDefinition"):
    """Drop a function's definition for an engine."""

    name: str


FunctionChange = (
    SetOption | RemoveOption | UpdateComment | AddDefinition | UpdateDefinition | DropDefinition
)
"""A change that a writer can request of a function."""
