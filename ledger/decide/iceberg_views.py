"""Iceberg's updates of a view: the parts that they set, their display text, and their checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import assert_never

from ledger.decide.bounds import check_field_ids
from ledger.events.catalog import AddDialect, DropDialect, UpdateDialect, ViewChange
from ledger.events.iceberg_views import (
    CurrentViewVersionSet,
    IcebergViewUpdate,
    ViewFormatUpgraded,
    ViewLocationSet,
    ViewPropertiesRemoved,
    ViewPropertiesSet,
    ViewSchemaAdded,
    ViewUuidAssigned,
    ViewVersionAdded,
    ViewVersionsRemoved,
)
from ledger.events.schema import RemoveOption, SetOption, UpdateComment
from ledger.model.errors import InvalidChangeError
from ledger.model.types.wire import field_from_wire
from ledger.state.catalog import ViewEntry
from ledger.state.iceberg_view import COMMENT_PROPERTY, IcebergView, fold_view_updates


def check_view_updates(view: IcebergView | None, updates: Sequence[IcebergViewUpdate]) -> None:
    """Check that updates can be recorded: they fold, and formats can hold the ids of the columns.

    Raises:
        InvalidChangeError: They contradict the view, or a column's id is out of range.
    """
    if view is None or updates:
        fold_view_updates(view, updates)
    for each in updates:
        if isinstance(each, ViewSchemaAdded):
            check_field_ids(map(field_from_wire, each.schema.fields))


def changed_view_parts(updates: Iterable[IcebergViewUpdate]) -> set[str]:
    """Return the parts of a view that updates set; concurrent updates of other parts all apply.

    Example:
        >>> sorted(changed_view_parts([ViewLocationSet("s3://v"), ViewPropertiesRemoved(("a",))]))
        ['location', 'property a']
    """
    return {part for each in updates for part in _parts_of(each)}


def _parts_of(update: IcebergViewUpdate) -> tuple[str, ...]:
    match update:
        case ViewUuidAssigned():
            return ("uuid",)
        case ViewFormatUpgraded():
            return ("format version",)
        case ViewLocationSet():
            return ("location",)
        case ViewPropertiesSet(updates=changed):
            return tuple(f"property {key}" for key in changed)
        case ViewPropertiesRemoved(removals=removals):
            return tuple(f"property {key}" for key in removals)
        case (
            ViewSchemaAdded() | ViewVersionAdded() | CurrentViewVersionSet() | ViewVersionsRemoved()
        ):
            return ("version",)
        case _:
            assert_never(update)


def describe_view_updates(updates: Iterable[IcebergViewUpdate]) -> str:
    """Return updates as display text.

    Example:
        >>> describe_view_updates([ViewPropertiesSet({"a": "b"}), CurrentViewVersionSet(2, 5)])
        'set property a, version 2 is current'
    """
    return ", ".join(said for each in updates for said in _describe_update(each))


def _describe_update(update: IcebergViewUpdate) -> Iterator[str]:
    match update:
        case ViewUuidAssigned() | ViewFormatUpgraded() | ViewSchemaAdded():
            # Every view has these; the version names what a reader of the log looks for.
            return
        case ViewLocationSet(location=location):
            yield f"location {location}"
        case ViewPropertiesSet(updates=changed):
            yield f"set {_plural(changed)} {', '.join(changed)}"
        case ViewPropertiesRemoved(removals=removals):
            yield f"removed {_plural(removals)} {', '.join(removals)}"
        case ViewVersionAdded(view_version=version):
            dialects = ", ".join(each.dialect for each in version.representations)
            yield f"added version {version.version_id} ({dialects or 'no query'})"
        case CurrentViewVersionSet(view_version_id=version_id):
            yield f"version {version_id} is current"
        case ViewVersionsRemoved(version_ids=version_ids):
            yield f"removed versions {', '.join(map(str, version_ids))}"
        case _:
            assert_never(update)


def _plural(keys: Collection[str]) -> str:
    return "property" if len(keys) == 1 else "properties"


def property_updates(
    view: ViewEntry, changes: Iterable[ViewChange]
) -> tuple[IcebergViewUpdate, ...]:
    """Return changes of an Iceberg view's options and comment as updates of its properties.

    Raises:
        InvalidChangeError: A change is one of a dialect, which is part of a version.
    """
    before = {} if view.iceberg is None else view.iceberg.properties
    wanted = dict(before)
    for each in changes:
        match each:
            case SetOption(key=key, value=value):
                wanted[key] = value
            case RemoveOption(key=key):
                wanted.pop(key, None)
            case UpdateComment(comment=comment):
                wanted.pop(COMMENT_PROPERTY, None)
                wanted.update({} if comment is None else {COMMENT_PROPERTY: comment})
            case AddDialect() | UpdateDialect() | DropDialect():
                raise InvalidChangeError(
                    f"view {view.identifier} is an Iceberg view, whose queries belong to versions "
                    "with schemas: replace the view in an engine; options and the comment can be "
                    "changed here"
                )
            case _:
                assert_never(each)
    removals = tuple(sorted(before.keys() - wanted.keys()))
    changed = {key: text for key, text in sorted(wanted.items()) if before.get(key) != text}
    removed = (ViewPropertiesRemoved(removals),) if removals else ()
    return (*removed, ViewPropertiesSet(changed)) if changed else removed
