"""The stream that a batch is attributed to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ledger import InvalidInputError
from projections.source.sink import _default_commit_user


def batch(*, java: str | None = None, active: tuple[str, ...] | None = None) -> Any:
    """Return rows of a session, which knows its query by itself, or the queries that are active."""
    session = SimpleNamespace()
    if active is None:
        session._jsc = SimpleNamespace(getLocalProperty={"sql.streaming.queryId": java}.get)
    else:
        session.streams = SimpleNamespace(active=[SimpleNamespace(id=each) for each in active])
    return cast("Any", SimpleNamespace(sparkSession=session))


@pytest.mark.parametrize(
    "rows", [batch(java="q1"), batch(active=("q1",)), batch(active=("q1", "q1"))]
)
def test_a_batch_is_of_the_query_that_runs_here(rows: Any) -> None:
    assert _default_commit_user(rows) == "spark-q1"


@pytest.mark.parametrize("rows", [batch(), batch(active=()), batch(active=("q1", "q2"))])
def test_a_batch_of_no_query_or_of_several_has_no_known_stream(rows: Any) -> None:
    with pytest.raises(InvalidInputError, match="stream is unknown"):
        _default_commit_user(rows)
