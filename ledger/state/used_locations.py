"""Locations ever given to databases and tables, so that none is used twice or inside another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Protocol

from msgspec import Struct

from ledger.locations import folded, is_absolute, place_of
from ledger.model.errors import InvalidChangeError


class UsedLocation(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Locations whose names some stores treat as equal, or a folder above a location.

    Attributes:
        paths: The locations as they were given.
        below: One location inside of this folder; empty for none.
    """

    paths: tuple[str, ...] = ()
    below: str = ""


class HasLocations(Protocol):
    """Anything with used locations: a catalog's state, or one with locations to come."""

    @property
    def locations(self) -> Mapping[str, UsedLocation]:
        """Used locations and the folders above them, by `location_key`."""


def location_key(path: str) -> str:
    """Return the key of a location: equal for paths that some stores treat as equal.

    Example:
        >>> location_key("shop.db/Orders"), location_key("s3a://Lake/T/")
        ('shop.db/orders', 's3://lake/t')
    """
    if not is_absolute(path):
        return folded(path)
    place = place_of(path)
    return f"{place.family}://{folded(place.host)}/{folded(place.path).rstrip('/')}"


def folders_above(path: str) -> Iterator[str]:
    """Yield the keys of the folders above a location, the nearest first.

    Example:
        >>> [*folders_above("shop.db/orders")], [*folders_above("s3://lake/a/b")]
        (['shop.db'], ['s3://lake/a', 's3://lake/'])
    """
    key = location_key(path)
    root = f"{key[: key.index('/', key.index('://') + 3)]}/" if is_absolute(path) else ""
    inside = key.removeprefix(root)
    while "/" in inside:
        inside = inside.rpartition("/")[0]
        yield root + inside
    if root and key != root:
        yield root


def uses_above(
    get: Callable[[str], UsedLocation | None], path: str
) -> Iterator[tuple[str, UsedLocation]]:
    """Yield the changed entries of the folders above a new location.

    Of the locations inside of a folder the first by name is kept, in any order of additions.

    Args:
        get: Returns the entry of a key.
        path: The location.
    """
    for folder in folders_above(path):
        above = get(folder) or UsedLocation()
        if not above.below or path < above.below:
            yield folder, UsedLocation(above.paths, path)


def combine_uses(_key: str, one: UsedLocation, other: UsedLocation) -> UsedLocation:
    """Return the entry of a location that is used by another name that some stores treat as equal.

    Raises:
        InvalidChangeError: It is used by the same name.
    """
    again = sorted({*one.paths} & {*other.paths})
    if again:
        raise InvalidChangeError(
            f"location {again[0]} was used before; none is used twice", kind="ILLEGAL_STATE"
        )
    below = min(filter(None, (one.below, other.below)), default="")
    return UsedLocation(tuple(sorted({*one.paths, *other.paths})), below)


def use_location(locations: MutableMapping[str, UsedLocation], path: str) -> None:
    """Add a location to the used ones.

    Raises:
        InvalidChangeError: It was used before.
    """
    key, own = location_key(path), UsedLocation((path,))
    there = locations.get(key)
    locations[key] = own if there is None else combine_uses(key, there, own)
    locations.update(uses_above(locations.get, path))


def find_location_conflict(state: HasLocations, path: str) -> str | None:
    """Return the used location that equals, contains or is inside `path`; None when it is free.

    A database's folder contains its tables, so being inside one is no conflict.
    """
    used = state.locations.get(location_key(path))
    if used is not None:
        return used.paths[0] if used.paths else used.below
    for folder in folders_above(path):
        above = state.locations.get(folder)
        is_database = not is_absolute(path) and "/" not in folder
        if above is not None and above.paths and not is_database:
            return above.paths[0]
    return None
