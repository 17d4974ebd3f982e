"""Iceberg's updates of a view, as events of the catalog's stream hold them.

Names, keys and order are those of the REST catalog's ViewUpdate. Ids and times are resolved when
the request is decided: no -1 is left, and a version that the view's history limit removes is named.

Source: the Iceberg REST catalog specification, ViewUpdate; the Iceberg view specification.
"""

from msgspec import Struct

from ledger.events.imported import IcebergSchema
from ledger.model.iceberg_objects import IcebergViewVersion, Int, Long


class _ViewUpdate(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="kebab",
    tag_field="action",
    forbid_unknown_fields=True,
):
    """An update of a view."""


class ViewUuidAssigned(_ViewUpdate, frozen=True, tag="assign-uuid"):
    """The view's UUID was assigned."""

    uuid: str


class ViewFormatUpgraded(_ViewUpdate, frozen=True, tag="upgrade-format-version"):
    """The format version was set."""

    format_version: Int


class ViewLocationSet(_ViewUpdate, frozen=True, tag="set-location"):
    """The base location was set; a relative one is below the ledger's root."""

    location: str


class ViewPropertiesSet(_ViewUpdate, frozen=True, tag="set-properties"):
    """Properties were set."""

    updates: dict[str, str]


class ViewPropertiesRemoved(_ViewUpdate, frozen=True, tag="remove-properties"):
    """Properties were removed."""

    removals: tuple[str, ...]


class ViewSchemaAdded(_ViewUpdate, frozen=True, tag="add-schema"):
    """A schema was added, with its id."""

    schema: IcebergSchema


class ViewVersionAdded(_ViewUpdate, frozen=True, tag="add-view-version"):
    """A version was added, with its id and the id of its schema."""

    view_version: IcebergViewVersion


class CurrentViewVersionSet(_ViewUpdate, frozen=True, tag="set-current-view-version"):
    """A version became the current one, at the time of its entry in the version log.

    `timestamp_ms` is None if there is no entry for it: the same request set another version after
    it, or the log of a registered view lacks it.
    """

    view_version_id: Int
    timestamp_ms: Long | None = None


class ViewVersionsRemoved(_ViewUpdate, frozen=True, tag="remove-view-versions"):
    """Versions beyond the limit of the view's history were removed; no REST update has it."""

    version_ids: tuple[Int, ...]


IcebergViewUpdate = (
    ViewUuidAssigned
    | ViewFormatUpgraded
    | ViewLocationSet
    | ViewPropertiesSet
    | ViewPropertiesRemoved
    | ViewSchemaAdded
    | ViewVersionAdded
    | CurrentViewVersionSet
    | ViewVersionsRemoved
)
"""Every update of a view that an event can hold."""
