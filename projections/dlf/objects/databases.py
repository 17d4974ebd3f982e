"""Databases. Source: Paimon's REST classes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from projections.dlf.objects.parts import Audited, Page


@frozen
class CreateDatabaseRequest:
    """Create a database."""

    name: str
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen(kw_only=True)
class GetDatabaseResponse(Audited):
    """A database; `location` is an absolute URL."""

    id: str
    name: str
    location: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterDatabaseRequest:
    """Take options away from a database and set others.

    Example:
        >>> AlterDatabaseRequest(updates={"comment": "sales"}).removals
        ()
    """

    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterDatabaseResponse:
    """Which options went, which were set, and which could not go since they were not there."""

    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListDatabasesResponse(Page):
    """Names of databases."""

    databases: tuple[str, ...] = ()
