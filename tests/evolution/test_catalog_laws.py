from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import (
    DataField,
    FileFunctionDefinition,
    Function,
    FunctionFileResource,
    Identifier,
    LedgerError,
    RemoveOption,
    SetOption,
    SqlFunctionDefinition,
    UpdateComment,
    ViewSchema,
)
from ledger.decide import (
    AlterDatabase,
    AlterFunction,
    AlterView,
    CatalogIntent,
    CatalogRequest,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    DropDatabase,
    DropFunction,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
)
from ledger.events import (
    AddDefinition,
    AddDialect,
    CatalogEvent,
    DropDefinition,
    DropDialect,
    FunctionChange,
    SchemaRecord,
    UpdateDefinition,
    UpdateDialect,
    ViewChange,
)
from ledger.log import Commit, Transaction
from ledger.model.types import IntType
from ledger.state import CatalogBuilder, CatalogState, CatalogStream

Commits: TypeAlias = list[Commit[CatalogEvent]]

STREAM = CatalogStream()
SCHEMA = SchemaRecord(fields=(), highest_field_id=-1)

# Few names, so that requests meet; `-` sorts before `.`, which full names as text would mix up.
databases = st.sampled_from(["a", "a-x", "b"])
identifiers = st.builds(Identifier, databases, st.sampled_from(["s", "t", "t-1"]))
ids = st.integers(0, 5).map(lambda number: f"{number:08x}")
texts = st.sampled_from(["1", "2"])
options = st.dictionaries(texts, texts)
changes: st.SearchStrategy[ViewChange] = st.one_of(
    st.builds(SetOption, texts, texts),
    st.builds(RemoveOption, texts),
    st.builds(UpdateComment, texts | st.none()),
    st.builds(AddDialect, texts, texts),
    st.builds(UpdateDialect, texts, texts),
    st.builds(DropDialect, texts),
)
views = st.builds(
    ViewSchema,
    st.just((DataField(0, "id", IntType()),)),
    texts,
    options,
    texts | st.none(),
    options,
)
definitions = st.builds(SqlFunctionDefinition, texts) | st.builds(
    FileFunctionDefinition, st.just((FunctionFileResource("jar", "/a.jar"),)), texts
)
function_changes: st.SearchStrategy[FunctionChange] = st.one_of(
    st.builds(SetOption, texts, texts),
    st.builds(RemoveOption, texts),
    st.builds(UpdateComment, texts | st.none()),
    st.builds(AddDefinition, texts, definitions),
    st.builds(UpdateDefinition, texts, definitions),
    st.builds(DropDefinition, texts),
)
parameters = st.none() | st.just(()) | st.just((DataField(0, "id", IntType()),))
functions = st.builds(
    Function,
    input_params=parameters,
    return_params=parameters,
    deterministic=st.booleans(),
    definitions=st.dictionaries(texts, definitions),
    comment=texts | st.none(),
    options=options,
)
requests: st.SearchStrategy[CatalogRequest] = st.one_of(
    st.builds(CreateDatabase, databases, options),
    st.builds(AlterDatabase, databases, st.lists(texts, max_size=1).map(tuple), options),
    st.builds(DropDatabase, databases),
    st.builds(CreateTable, identifiers, ids, st.just(SCHEMA)),
    st.builds(CreateTable, identifiers, ids, st.just(SCHEMA), st.sampled_from(["/x", "/y/z"])),
    st.builds(RenameTable, identifiers, identifiers),
    st.builds(DropTable, identifiers, ids),
    st.builds(CreateView, identifiers, ids, views),
    st.builds(AlterView, identifiers, st.lists(changes, max_size=3).map(tuple)),
    st.builds(RenameView, identifiers, identifiers),
    st.builds(DropView, identifiers),
    st.builds(CreateFunction, identifiers, ids, functions),
    st.builds(AlterFunction, identifiers, st.lists(function_changes, max_size=3).map(tuple)),
    st.builds(DropFunction, identifiers),
)
histories = st.lists(requests, max_size=25).map(
    lambda asked: history([CreateDatabase("a-x"), CreateDatabase("a"), *asked])
)


def fold(commits: Sequence[Commit[CatalogEvent]], state: CatalogState | None) -> CatalogState:
    builder = STREAM.builder(state)
    for commit in commits:
        builder.commit(commit)
    return builder.freeze()


def committed(events: tuple[CatalogEvent, ...], version: int) -> Commit[CatalogEvent]:
    transaction: Transaction[CatalogEvent] = Transaction(
        asked="", id=str(version), author="ab"[version % 2], events=events
    )
    return Commit(format=3, version=version, time_millis=1 + version, transactions=(transaction,))


def history(asked: Sequence[CatalogRequest]) -> Commits:
    """Return what requests become, one after the other; rejected ones are left out."""
    commits: Commits = []
    builder = CatalogBuilder()
    for request in asked:
        try:
            events = CatalogIntent(request).decide(builder.freeze(), ())
        except LedgerError:
            continue
        commits.append(committed(events, len(commits)))
        builder.commit(commits[-1])
    return commits


def in_order(state: CatalogState) -> str:
    """Return a text that shows the order of mappings, too."""
    named = state.databases, state.tables, state.views, state.functions
    return repr((*named, sorted(state.used_paths)))


@given(histories, st.data())
def test_a_prefix_kept_as_a_record_and_the_rest_give_the_same_state(
    commits: Commits, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(commits)))
    whole = fold(commits, None)
    kept = STREAM.decode_state(STREAM.encode_state(fold(commits[:cut], None)))

    resumed = fold(commits[cut:], kept)

    assert resumed == whole
    assert in_order(resumed) == in_order(whole)
    assert STREAM.encode_state(resumed) == STREAM.encode_state(whole)


@given(histories)
def test_no_location_is_given_out_twice(commits: Commits) -> None:
    given_out: list[str] = []
    for commit in commits:
        for event in commit.transactions[0].events:
            path = getattr(event, "path", None)
            if path is not None:
                given_out.append(path)
    assert len(given_out) == len(set(given_out))
    assert fold(commits, None).used_paths == set(given_out)


@given(histories, requests, st.lists(requests, max_size=3))
def test_what_is_decided_again_after_a_race_folds_or_is_refused(
    commits: Commits, mine: CatalogRequest, theirs: list[CatalogRequest]
) -> None:
    base = fold(commits, None)
    intent = CatalogIntent(mine)
    try:
        intent.decide(base, ())
        state, winners = base, list[Commit[CatalogEvent]]()
        for request in theirs:
            events = CatalogIntent(request).decide(state, ())
            winners.append(committed(events, state.version + 1))
            state = fold(winners[-1:], state)
        events = intent.decide(state, winners)
    except LedgerError:
        return
    fold([committed(events, state.version + 1)], state)


def test_a_record_with_a_key_from_another_version_is_refused() -> None:
    record = STREAM.encode_state(fold([], None)).replace(b'"version"', b'"later":1,"version"')
    with pytest.raises(msgspec.DecodeError, match="later"):
        STREAM.decode_state(record)
