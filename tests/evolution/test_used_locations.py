from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidChangeError
from ledger.locations import folded, is_absolute, place_of
from ledger.state.used_locations import UsedLocation, find_location_conflict, use_location

NAMES = st.sampled_from(["a", "A", "b", "ab"])
INSIDE = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FOLDERS = st.sampled_from(["{}", "/{}", "s3://lake/{}", "s3a://lake/{}/"])
PATHS = st.builds(str.format, FOLDERS, INSIDE) | st.just("s3://lake")


def conflicts(used: str, path: str) -> bool:
    """Compare two locations by the rule, without an index."""
    if is_absolute(used) or is_absolute(path):
        return is_absolute(used) and is_absolute(path) and place_of(used).meets(place_of(path))
    one, other = folded(path), folded(used)
    inside = "/" in other and one.startswith(f"{other}/")
    return one == other or other.startswith(f"{one}/") or inside


@given(st.lists(PATHS, max_size=6, unique=True), PATHS)
def test_a_conflict_is_found_if_and_only_if_a_used_location_meets_the_path(
    used: list[str], path: str
) -> None:
    locations: dict[str, UsedLocation] = {}
    for each in used:
        use_location(locations, each)
    found = find_location_conflict(SimpleNamespace(locations=locations), path)
    if found is None:
        assert not any(conflicts(each, path) for each in used)
    else:
        assert found in used
        assert conflicts(found, path)


@given(st.lists(PATHS, max_size=6, unique=True))
def test_the_order_of_uses_does_not_matter(used: list[str]) -> None:
    one: dict[str, UsedLocation] = {}
    other: dict[str, UsedLocation] = {}
    for each in used:
        use_location(one, each)
    for each in reversed(used):
        use_location(other, each)
    assert one == other


def test_none_is_used_twice() -> None:
    locations: dict[str, UsedLocation] = {}
    use_location(locations, "shop.db/orders")
    use_location(locations, "shop.db/Orders")
    with pytest.raises(InvalidChangeError, match="was used before"):
        use_location(locations, "shop.db/orders")
