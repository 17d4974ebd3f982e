"""Owner of a table: the party that commits its data, and the transitions.

`ledger`: the library commits files; `mirrored`: the table follows a source and takes no commits;
`served`: engines commit data through a server. The library changes metadata, and commits data only
as the format's engines do (`ledger.engine_writes`). A table is
mirrored from its import on, and never again after another owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct, UnsetType

from ledger.events.table import OwnerSet, ServingProtocol
from ledger.model.errors import InvalidChangeError, InvalidInputError
from ledger.state.declared_formats import DEFAULT_FORMATS, FORMATS_OPTION, Rules

OwnerKind = Literal["ledger", "mirrored", "served"]
PROTOCOLS: Final[tuple[ServingProtocol, ...]] = get_args(ServingProtocol)

ANY_OWNER: Final[frozenset[OwnerKind]] = frozenset(get_args(OwnerKind))
METADATA_OWNERS: Final[frozenset[OwnerKind]] = frozenset({"ledger", "served"})
"""The owners under which the library may change a table's metadata."""

DATA_OWNERS: Final[frozenset[OwnerKind]] = frozenset({"ledger"})
"""The owners under which the library may commit lists of data files."""


class Owner(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The party that commits data to a table.

    Attributes:
        kind: The kind of owner.
        protocol: The protocol that engines commit through; None unless it is served.
        since_version: The commit that made it so. A server rejects a commit of an engine that is
            based on an older version: the table had another owner since.
    """

    kind: OwnerKind = "ledger"
    protocol: ServingProtocol | None = None
    since_version: int = 0

    def __str__(self) -> str:
        return self.kind if self.protocol is None else f"{self.kind} ({self.protocol})"

    @property
    def document(self) -> dict[str, str | int | None]:
        """The owner as JSON: `kind`, `protocol` and `sinceVersion`."""
        return {
            "kind": self.kind,
            "protocol": self.protocol,
            "sinceVersion": self.since_version,
        }

    def after(self, event: OwnerSet, version: int) -> Owner:
        """Return the owner after an event.

        Args:
            event: The event.
            version: The commit that holds it.

        Raises:
            InvalidChangeError: It contradicts the owner before.
        """
        protocol = None if isinstance(event.protocol, UnsetType) else event.protocol
        before: OwnerKind = "ledger" if event.owner == "served" else "served"
        if self.kind != before or (protocol is None) != (event.owner == "ledger"):
            raise InvalidChangeError(
                f"a table that is {self} cannot become {event.owner} with protocol {protocol}",
                kind="ILLEGAL_STATE",
            )
        return Owner(event.owner, protocol, version)


LEDGER: Final = Owner()


def declared_serving_protocol(options: Mapping[str, str]) -> ServingProtocol:
    """Return the protocol of the one format that a table declares and engines can commit to.

    Args:
        options: The table's options.

    Raises:
        InvalidInputError: It declares several such formats.
        InvalidChangeError: It declares none.

    Example:
        >>> declared_serving_protocol({"ledger.formats": "iceberg"})
        'iceberg'
    """
    declared = Rules.of(options).formats
    found = [each for each in PROTOCOLS if each in declared]
    text = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
    if not found:
        raise InvalidChangeError(
            f"the table declares {text!r}, and engines commit to tables of "
            f"{' and '.join(PROTOCOLS)} alone; set {FORMATS_OPTION} to one of them first, where "
            "the table can be that",
            kind="SERVED",
        )
    if len(found) > 1:
        raise InvalidInputError(
            f"the protocol is not clear: the table declares {text!r}; name one of "
            f"{', '.join(PROTOCOLS)}"
        )
    return found[0]


def refuse_unservable_options(options: Mapping[str, str], protocol: ServingProtocol) -> None:
    """Reject options that do not fit a table whose data engines commit.

    Engines' commits list files in the manifests of their own format. A table's files of any other
    format are made of the ledger's lists, which such commits do not extend.

    Args:
        options: The table's options.
        protocol: The protocol that engines commit through.

    Raises:
        InvalidChangeError: They do not declare the protocol's format, or declare another one.
    """
    declared = Rules.of(options).formats
    if declared != {protocol}:
        text = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
        raise InvalidChangeError(
            f"the table declares {text!r}, and engines that commit through the {protocol} protocol "
            f"write {protocol} alone: a served table declares its protocol's format and no other. "
            f"Before serving it set {FORMATS_OPTION}={protocol} where the table can be that; while "
            "it is served this cannot change",
            kind="SERVED",
        )
