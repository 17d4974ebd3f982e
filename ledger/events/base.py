"""Base of the JSON form that all changes and events share.

JSON keys are camelCase, the discriminator is `type`, absent optional keys are left out, and a key
that this version does not know is refused: skipping it could lose what a newer writer meant.
"""

from msgspec import Struct


class Record(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """An immutable record of the log."""


def kind_of(record: type[Struct]) -> str:
    """Return what the log calls a kind of record.

    Example:
        >>> from ledger.events.table import TableDropped
        >>> kind_of(TableDropped)
        'dropTable'
    """
    return str(record.__struct_config__.tag)
