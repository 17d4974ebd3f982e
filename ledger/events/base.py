"""The shape that every change and event shares on the wire.

JSON keys are camelCase, the discriminator is `type`, absent optional keys are left out, and a key
that this version does not know is refused: skipping it could lose what a newer writer meant.
"""

from __future__ import annotations

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
