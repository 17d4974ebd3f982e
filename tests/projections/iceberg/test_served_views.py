"""Views that engines create and change: their events, states, files, and concurrent commits."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AlreadyExistsError,
    CommitConflictError,
    Identifier,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    LedgerError,
    NotFoundError,
    RemoveOption,
    Schema,
    SetOption,
    UnsupportedError,
    UpdateComment,
    ViewSchema,
)
from ledger.decide import CatalogIntent
from ledger.events import AddDialect, CatalogEvent
from ledger.events.iceberg_views import ViewVersionAdded
from ledger.log import Transaction
from ledger.state import CatalogBuilder, CatalogStream, ViewEntry
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.dlf.table_views import get_view_response
from projections.iceberg.rest_updates import StaleBaseError
from projections.iceberg.served_views import create_view, load_view, register_view, update_view
from projections.iceberg.view_metadata import ViewMetadata, read_view_metadata, write_view_metadata
from projections.iceberg.view_updates import (
    AssertViewUuid,
    ViewUpdate,
    apply_view_updates,
    view_update_from_json,
)
from tests.lakes import lake_on, memory
from tests.projections.iceberg.metadata.test_views import (
    COLUMN,
    CREATION,
    current,
    properties,
    schema,
    version,
)

NAME = Identifier("shop", "v")
TYPES: tuple[Any, ...] = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"),
    *("string", "uuid", "binary", "fixed[16]", "decimal(9, 2)", "timestamp_ns", "variant"),
    {"type": "list", "element-id": 7, "element": "int", "element-required": True},
    {
        "type": "map",
        "key-id": 7,
        "key": "string",
        "value-id": 8,
        "value": {"type": "struct", "fields": [{**COLUMN, "id": 9, "required": True}]},
        "value-required": False,
    },
)


def shop(root: Path | None = None) -> Ledger:
    lake = lake_on(memory() if root is None else LocalStore(root))
    lake.init()
    lake.create_database("shop")
    return lake


def batch(*updates: dict[str, Any]) -> list[ViewUpdate]:
    return [view_update_from_json(each) for each in updates]


def location(lake: Ledger, path: str = "shop.db/v") -> dict[str, Any]:
    return {"action": "set-location", "location": f"{lake.url}/{path}"}


def create(lake: Ledger, *updates: dict[str, Any], **commit: Any) -> ViewEntry:
    return create_view(handle_of(lake), NAME, batch(*CREATION, location(lake), *updates), **commit)


def update(lake: Ledger, *updates: dict[str, Any], uuid: str | None = None, **commit: Any) -> Any:
    required = [] if uuid is None else [AssertViewUuid(uuid)]
    return update_view(handle_of(lake), NAME, required, batch(*updates), **commit)


def loaded(lake: Ledger, name: Identifier = NAME) -> ViewMetadata:
    handle = handle_of(lake)
    view = load_view(handle, handle.state.view(name))
    folder, _, file = view.location.removeprefix(f"{lake.url}/").rpartition("/")
    body = handle.setting.store.read(f"{folder}/{file}")
    assert body is not None
    assert read_view_metadata(body) == view.metadata
    return view.metadata


def check_replay(lake: Ledger) -> None:
    """Check that the log alone, and a record of the state, give the state."""
    handle, builder = handle_of(lake), CatalogBuilder()
    for each in handle.events():
        builder.commit(each)
    record = CatalogStream().encode_state(handle.state)
    assert builder.freeze() == handle.state == CatalogStream().decode_state(record)
    for name, entry in CatalogStream().decode_state(record).views.items():
        assert load_view(handle, entry).content == write_view_metadata(loaded(lake, name))


def test_a_view_has_the_metadata_that_its_engine_asked_for_by_one_commit() -> None:
    lake = shop()
    before = handle_of(lake).state.version
    create(lake, properties({"comment": "all", "owner": "ana"}))
    metadata = loaded(lake)
    made = apply_view_updates(
        None,
        batch(*CREATION, location(lake), properties({"comment": "all", "owner": "ana"})),
        home=lake.url,
        now_ms=0,
    )
    assert metadata == made.metadata
    assert metadata.location == f"{lake.url}/shop.db/v"
    assert handle_of(lake).state.version == before + 1
    check_replay(lake)


def test_updates_are_recorded_in_the_order_of_the_request_with_ids_resolved() -> None:
    lake = shop()
    create(lake)
    wide = schema(COLUMN, {**COLUMN, "id": 2, "name": "m"})
    update(lake, properties({"a": "b"}), wide, version("select 2"), current(), location(lake, "x"))
    (event,) = handle_of(lake).events_of(handle_of(lake).state.version)
    said = msgspec.to_builtins(event)
    assert said["type"] == "updateView"
    assert [each["action"] for each in said["updates"]] == [
        *("set-properties", "add-schema", "add-view-version", "set-current-view-version"),
        "set-location",
    ]
    added = said["updates"][2]["view-version"]
    assert (added["version-id"], added["schema-id"]) == (2, 1)
    assert said["updates"][3]["view-version-id"] == 2
    assert said["updates"][4]["location"] == "x"
    check_replay(lake)


@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_columns_of_every_type_are_the_same_after_replay(data_type: Any) -> None:
    lake = shop()
    create(lake, schema({**COLUMN, "type": data_type, "doc": "d"}), version("select 2"), current())
    fields = json.loads(write_view_metadata(loaded(lake)))["schemas"][1]["fields"]
    assert fields == [{**COLUMN, "type": data_type, "doc": "d"}]
    check_replay(lake)


def test_the_dlf_view_follows_from_the_current_version() -> None:
    lake = shop()
    create(lake, properties({"comment": "all", "owner": "ana"}))
    update(lake, version("select 2", "spark", "trino", schema_id=0), current())
    view = get_view_response(lake.view("shop.v")).schema
    both = {"spark": "select 2", "trino": "select 2"}
    assert view == ViewSchema(view.fields, "select 2", both, "all", {"owner": "ana"})
    assert [(each.id, each.name) for each in view.fields] == [(1, "n")]


def test_expired_versions_are_recorded_so_that_replay_needs_no_limit() -> None:
    lake = shop()
    create(lake, properties({"version.history.num-entries": "2"}))
    for number in range(2, 6):
        update(lake, version(f"select {number}", schema_id=0), current())
    assert [each.version_id for each in loaded(lake).versions] == [4, 5]
    assert [each.version_id for each in loaded(lake).version_log] == [4, 5]
    check_replay(lake)


def test_updates_that_change_nothing_are_no_event() -> None:
    lake = shop()
    create(lake, properties({"a": "b"}))
    done = update(lake, properties({"a": "b"}), version("select 1", schema_id=0), current(1))
    assert [*handle_of(lake).events_of(done.version)] == []


def test_a_view_created_through_the_ledger_is_an_iceberg_view_of_one_version() -> None:
    lake = shop()
    columns = Schema.of({"id": "INT NOT NULL", "tags": "ARRAY<STRING>"}).fields
    lake.create_view("shop.v", ViewSchema(columns, "q", {"trino": "t"}, "c", {"a": "b"}))
    view = loaded(lake)
    assert [(each.dialect, each.sql) for each in view.current_version.representations] == [
        ("default", "q"),
        ("trino", "t"),
    ]
    assert dict(view.properties) == {"a": "b", "comment": "c"}
    assert view.current_version.default_namespace == ("shop",)
    lake.alter_view("shop.v", [UpdateComment("d")])
    assert (len(loaded(lake).versions), loaded(lake).properties["comment"]) == (1, "d")
    lake.rename_view("shop.v", "shop.w")
    renamed = loaded(lake, Identifier("shop", "w"))
    assert (renamed.view_uuid, renamed.location) == (view.view_uuid, view.location)


def test_a_view_created_through_the_ledger_is_replaced_by_an_engine_with_its_history() -> None:
    lake = shop()
    lake.create_view("shop.v", ViewSchema((), "q", {"spark": "s"}))
    before = loaded(lake)
    update(lake, version("z", "default", "spark", schema_id=0), current(), uuid=before.view_uuid)
    after = loaded(lake)
    assert (after.view_uuid, after.location) == (before.view_uuid, before.location)
    assert after.versions[0] == before.current_version
    assert [each.version_id for each in after.version_log] == [1, 2]
    assert lake.view("shop.v").schema.query == "z"
    assert lake.view("shop.v").schema.dialects == {"spark": "z"}
    check_replay(lake)


def test_a_view_that_iceberg_cannot_express_is_not_loaded_and_the_message_says_why() -> None:
    lake = shop()
    lake.create_view("shop.v", ViewSchema(Schema.of({"m": "MULTISET<INT>"}).fields, "q"))
    lake.create_view("shop.w", ViewSchema((), "q", {"Spark": "a", "spark": "b"}))
    with pytest.raises(UnsupportedError, match="column m"):
        loaded(lake)
    with pytest.raises(UnsupportedError, match="two queries of one dialect"):
        loaded(lake, Identifier("shop", "w"))


def test_options_and_the_comment_of_an_iceberg_view_are_changed_through_the_ledger() -> None:
    lake = shop()
    create(lake, properties({"a": "1", "b": "2"}))
    lake.alter_view("shop.v", [SetOption("a", "3"), RemoveOption("b"), UpdateComment("c")])
    assert dict(loaded(lake).properties) == {"a": "3", "comment": "c"}
    lake.alter_view("shop.v", [UpdateComment(None)])
    assert dict(loaded(lake).properties) == {"a": "3"}
    with pytest.raises(InvalidChangeError, match="replace the view in an engine"):
        lake.alter_view("shop.v", [AddDialect("trino", "q")])
    check_replay(lake)


def test_a_repeated_commit_id_returns_the_first_commit() -> None:
    lake = shop()
    first = create(lake, commit_id="k1", asked=["create"])
    assert create(lake, commit_id="k1", asked=["create"]) == first
    with pytest.raises(InvalidInputError):
        create(lake, commit_id="k1", asked=["another"])
    replace = version("select 2", schema_id=0), current()
    done = update(lake, *replace, commit_id="k2", asked=["replace"])
    again = update(lake, *replace, commit_id="k2", asked=["replace"])
    assert (again.version, again.repeated) == (done.version, True)
    assert len(loaded(lake).versions) == 2


def test_names_are_unique_across_tables_and_views() -> None:
    lake = shop()
    create(lake)
    with pytest.raises(AlreadyExistsError):
        create(lake)
    with pytest.raises(AlreadyExistsError):
        lake.create_table("shop.v", {"id": "INT"})
    with pytest.raises(NotFoundError):
        update_view(handle_of(lake), Identifier("shop", "none"), [], batch(properties({"a": "b"})))


def test_a_requirement_of_another_uuid_is_stale() -> None:
    lake = shop()
    create(lake)
    with pytest.raises(StaleBaseError):
        update(lake, properties({"a": "b"}), uuid="01234567-89ab-cdef-0123-456789abcdef")


def racing(lake: Ledger, theirs: Callable[[], object], *mine: dict[str, Any]) -> ViewEntry:
    """Decide `mine`, let another server's commit win, decide it again; return the view then."""
    made: list[Any] = []
    handle = handle_of(lake_on(handle_of(lake).setting.store))
    keep: Any = lambda make, _: made.append(make())  # noqa: E731 - in place of a commit
    handle.commit = keep  # type: ignore[method-assign]
    update_view(handle, NAME, [], batch(*mine))
    intent, before = CatalogIntent(made[0]), handle.state
    assert intent.decide(before, ())
    theirs()
    events = intent.decide(handle.state, [*handle.events(before.version + 1)])
    transaction: Transaction[CatalogEvent] = Transaction(id="t", asked="", events=events)
    builder, state = CatalogBuilder(handle.state), handle.state
    builder.begin(state.version + 1, state.time_millis)
    builder.add(transaction)
    return builder.freeze().view(NAME)


REPLACE = version("select 3", schema_id=0), current()


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ((version("select 2", schema_id=0), current()), REPLACE),
        ((properties({"a": "1"}),), (properties({"a": "2"}),)),
        (({"action": "remove-properties", "removals": ["k"]},), (properties({"k": "2"}),)),
        ((version("select 2", schema_id=0),), REPLACE),
    ],
)
def test_the_loser_of_a_race_for_one_part_of_a_view_gets_a_conflict(
    theirs: tuple[dict[str, Any], ...], mine: tuple[dict[str, Any], ...]
) -> None:
    lake = shop()
    create(lake, properties({"k": "1"}))
    with pytest.raises(CommitConflictError):
        racing(lake, lambda: update(lake, *theirs), *mine)
    check_replay(lake)


def test_concurrent_updates_of_different_parts_both_apply() -> None:
    lake = shop()
    create(lake)
    view = racing(lake, lambda: update(lake, properties({"a": "1"})), *REPLACE).iceberg
    assert view is not None
    assert (view.properties, view.current_version_id) == ({"a": "1"}, 2)
    view = racing(lake, lambda: update(lake, *REPLACE), properties({"b": "3"})).iceberg
    assert view is not None
    assert (view.properties, view.current_version_id) == ({"a": "1", "b": "3"}, 2)


def test_two_servers_that_replace_a_view_at_once_lose_no_version_that_they_acknowledged(
    tmp_path: Path,
) -> None:
    create(shop(tmp_path))

    def replace(server: str) -> list[str]:
        lake, kept = lake_on(LocalStore(tmp_path)), []
        for number in range(8):
            with suppress(CommitConflictError):
                query = f"select '{server}{number}'"
                update(lake, version(query, schema_id=0), current())
                kept.append(query)
        return kept

    with ThreadPoolExecutor() as pool:
        kept = {query for each in pool.map(replace, "ab") for query in each}
    log = handle_of(lake_on(LocalStore(tmp_path))).events()
    said = [event for commit in log for each in commit.transactions for event in each.events]
    added = [it for event in said for it in getattr(event, "updates", ())]
    versions = [it.view_version for it in added if isinstance(it, ViewVersionAdded)]
    assert {it.representations[0].sql for it in versions} == {"select 1", *kept}
    assert sorted(it.version_id for it in versions) == [*range(1, len(kept) + 2)]


def test_a_change_through_the_ledger_and_one_by_an_engine_conflict() -> None:
    lake = shop()
    lake.create_view("shop.v", ViewSchema((), "q"))
    with pytest.raises(CommitConflictError):
        racing(
            lake,
            lambda: lake.alter_view("shop.v", [SetOption("a", "1")]),
            *(version("z", "default", schema_id=0), current()),
        )


def test_a_view_dropped_meanwhile_is_a_conflict() -> None:
    lake = shop()
    create(lake)
    with pytest.raises((CommitConflictError, NotFoundError)):
        racing(lake, lambda: lake.drop_view("shop.v"), *REPLACE)


@pytest.mark.parametrize(
    "path",
    ["_ledger/log", "shop.db/t/metadata", "shop.db/t", "a/_ledger", "shop.db/t/_ledger/log"],
)
def test_metadata_files_are_not_written_among_the_ledgers_own_or_a_tables(
    tmp_path: Path, path: str
) -> None:
    lake = shop(tmp_path)
    table = lake.create_table("shop.t", {"id": "INT"})
    create(lake)
    folder = f"{lake.url}/{path}".replace("shop.db/t", table.location.removeprefix(f"{lake.url}/"))
    before = handle_of(lake).state.version
    with pytest.raises(InvalidInputError):
        update(lake, properties({"write.metadata.path": folder}))
    link = tmp_path / "link"
    link.symlink_to(folder.removeprefix("file://"))
    with pytest.raises(InvalidInputError):
        update(lake, properties({"write.metadata.path": f"{lake.url}/link"}))
    assert handle_of(lake).state.version == before


@pytest.mark.parametrize("place", ["relative/v", "gopher://host/v", ""])
def test_a_location_that_is_no_place_for_files_is_rejected_before_the_commit(place: str) -> None:
    lake = shop()
    create(lake)
    before = handle_of(lake).state.version
    with pytest.raises(LedgerError):
        update(lake, {"action": "set-location", "location": place})
    assert handle_of(lake).state.version == before


def test_a_registered_view_has_the_metadata_of_its_file(tmp_path: Path) -> None:
    lake = shop(tmp_path)
    create(lake, properties({"version.history.num-entries": "3"}))
    for number in range(2, 6):
        update(lake, version(f"select {number}", schema_id=0), current())
    update(lake, current(3))
    metadata = loaded(lake)
    before = load_view(handle_of(lake), lake.view("shop.v")).location
    lake.drop_view("shop.v")
    entry = register_view(handle_of(lake), NAME, before)
    assert loaded(lake) == metadata
    assert load_view(handle_of(lake), entry).location == before
    check_replay(lake)


def test_a_log_without_an_entry_of_the_current_version_is_registered_as_it_is(
    tmp_path: Path,
) -> None:
    lake = shop(tmp_path)
    create(lake)
    text = json.loads(write_view_metadata(loaded(lake)))
    lake.drop_view("shop.v")
    file = tmp_path / "a.metadata.json"
    file.write_text(json.dumps({**text, "version-log": []}))
    register_view(handle_of(lake), NAME, f"{lake.url}/{file.name}")
    assert loaded(lake) == read_view_metadata(file.read_bytes())
    lake.drop_view("shop.v")
    file.write_text(json.dumps({**text, "version-log": [{"timestamp-ms": 1, "version-id": 9}]}))
    with pytest.raises(InvalidInputError, match="version 9"):
        register_view(handle_of(lake), NAME, f"{lake.url}/{file.name}")


def test_files_outside_of_the_allowed_locations_are_neither_read_nor_placed(tmp_path: Path) -> None:
    lake = shop(tmp_path / "lake")
    create(lake)
    file = tmp_path / "a.metadata.json"
    file.write_bytes(write_view_metadata(loaded(lake)))
    lake.drop_view("shop.v")
    before = handle_of(lake).state.version
    with pytest.raises(UnsupportedError, match="metadata-location"):
        register_view(handle_of(lake), NAME, f"file://{file}")
    with pytest.raises(NotFoundError):
        register_view(handle_of(lake), NAME, f"{lake.url}/absent.metadata.json")
    for updates in (
        {"action": "set-location", "location": f"file://{tmp_path}/v"},
        {"action": "set-location", "location": f"{lake.url}/../v"},
        properties({"write.metadata.path": f"{tmp_path}/m"}),
    ):
        with pytest.raises((UnsupportedError, InvalidInputError)):
            create(lake, updates)
    assert handle_of(lake).state.version == before
    allowed = lake_on(LocalStore(tmp_path / "lake"), allowed=[str(tmp_path)])
    register_view(handle_of(allowed), NAME, f"file://{file}")
    update(allowed, properties({"write.metadata.path": f"file://{tmp_path}/m"}))
    view = load_view(handle_of(allowed), allowed.view("shop.v"))
    assert [f"file://{each}" for each in (tmp_path / "m").iterdir()] == [view.location]


@pytest.mark.parametrize("kind", ["native", "served"])
@pytest.mark.parametrize(
    "place",
    ["{root}/other", "file://{root}/other", "{lake}/../other", "{lake}/_ledger/log", "other"],
)
def test_no_metadata_file_is_written_where_the_library_may_put_an_option(
    tmp_path: Path, place: str, kind: str
) -> None:
    lake = shop(tmp_path / "lake")
    if kind == "served":
        create(lake)
    else:
        lake.create_view("shop.v", ViewSchema((), "select 1"))
    folder = place.format(root=tmp_path, lake=lake.url)
    lake.alter_view("shop.v", [SetOption("write.metadata.path", folder)])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((UnsupportedError, InvalidInputError), match=r"write\.metadata\.path"):
        load_view(handle_of(lake), lake.view("shop.v"))
    assert sorted(tmp_path.rglob("*")) == before
    lake.alter_view("shop.v", [RemoveOption("write.metadata.path")])
    assert loaded(lake).current_version_id == 1


def test_a_repeated_registration_does_not_read_the_file_again(tmp_path: Path) -> None:
    lake = shop(tmp_path)
    create(lake)
    file = tmp_path / "a.metadata.json"
    file.write_bytes(write_view_metadata(loaded(lake)))
    lake.drop_view("shop.v")
    first = register_view(handle_of(lake), NAME, f"file://{file}", commit_id="k")
    file.unlink()
    assert register_view(handle_of(lake), NAME, f"file://{file}", commit_id="k") == first


def test_a_moved_ledger_has_the_locations_of_its_views_below_its_new_root(tmp_path: Path) -> None:
    lake = shop(tmp_path / "a")
    create(lake)
    (tmp_path / "a").rename(tmp_path / "b")
    moved = lake_on(LocalStore(tmp_path / "b"))
    moved.record_move()
    assert loaded(moved).location == f"{moved.url}/shop.db/v"


UPDATES = st.one_of(
    st.sampled_from(["a", "b", "version.history.num-entries"]).flatmap(
        lambda key: st.sampled_from(["1", "2", "0", "x"]).map(lambda text: properties({key: text}))
    ),
    st.sampled_from(["a", "b", "c"]).map(
        lambda key: {"action": "remove-properties", "removals": [key]}
    ),
    st.lists(st.integers(1, 3), unique=True, max_size=3).map(
        lambda ids: schema(*({**COLUMN, "id": each, "name": f"c{each}"} for each in ids))
    ),
    st.builds(
        version,
        st.sampled_from(["select 1", "select 2", "select 3"]),
        st.sampled_from(["spark", "trino"]),
        schema_id=st.integers(-1, 2),
        at=st.integers(0, 9),
    ),
    st.integers(-1, 5).map(current),
    st.sampled_from(["s", "t"]).map(lambda path: {"action": "set-location", "location": path}),
)


@given(st.lists(st.lists(UPDATES, max_size=6), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_batches_give_the_metadata_that_they_ask_for_or_are_rejected(
    batches: list[list[dict[str, Any]]],
) -> None:
    lake = shop()
    create(lake)
    for each in batches:
        updates = batch(
            *(
                location(lake, f"shop.db/{it['location']}") if "location" in it else it
                for it in each
            )
        )
        base = loaded(lake)
        try:
            wanted = apply_view_updates(base, updates, home=lake.url, now_ms=7).metadata
        except LedgerError:
            with pytest.raises(LedgerError):
                update_view(handle_of(lake), NAME, [], updates)
            assert loaded(lake) == base
            continue
        update_view(handle_of(lake), NAME, [], updates)
        found = loaded(lake)
        assert (found.versions, found.schemas) == (wanted.versions, wanted.schemas)
        assert (found.properties, found.location) == (wanted.properties, wanted.location)
        assert [it.version_id for it in found.version_log] == [
            it.version_id for it in wanted.version_log
        ]
    check_replay(lake)
