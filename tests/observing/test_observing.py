"""Log events have the documented names and keys, and cost nothing without a listener.

Every kind of thing that happens is made to happen on real stores.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
import structlog
from structlog.testing import capture_logs

from ledger import AddColumn, InvalidChangeError, SetOption
from ledger.log import Appended, PendingCommit, Request, append
from ledger.log.request import LostRace
from ledger.observing.telemetry import LOG_EVENTS, METRICS, SPANS
from ledger.table_handle import handle_of
from tests.lakes import data_file, lake_on, memory, orders
from tests.observing.happenings import race, unknown
from tests.programs import output_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ledger" / "docs" / "observing.md").read_text()
COMMITS = {name for name in LOG_EVENTS if name.startswith("commit_")}

LoggedEvents = list[dict[str, Any]]


def keys(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def test_the_page_is_the_table_of_log_events() -> None:
    rows = [
        f"| `{n}` | {each.level} | {each.when} | {keys(each.keys)} |"
        for n, each in LOG_EVENTS.items()
    ]
    rows += [f"| `{name}` | {keys(each)} |" for name, each in SPANS.items()]
    rows += [
        f"| `{n}` | {each.kind} | `{each.unit}` | {each.meaning} | {keys(each.keys)} |"
        for n, each in METRICS.items()
    ]

    assert [each for each in PAGE.splitlines() if each.startswith("| `")] == rows


def logged_in_the_code() -> Iterator[tuple[str, ast.Call]]:
    for path in [*ROOT.glob("ledger/**/*.py"), *ROOT.glob("projections/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"warn", "log_event"}:
                yield path.name, node


def test_every_event_that_the_code_logs_is_in_the_table_with_its_keys() -> None:
    found = 0
    for file, call in logged_in_the_code():
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            notice = LOG_EVENTS[name.value]
            given = {each.arg for each in call.keywords}
            assert given - {None} <= set(notice.keys), (file, name.value)
            assert None in given or given == set(notice.keys), (file, name.value)
            found += 1
    assert found >= len(LOG_EVENTS) - 4


def test_commits_conflicts_retries_and_rejections_are_logged_with_their_keys() -> None:
    with capture_logs() as events:
        race()
        unknown()

    ours = [each for each in events if each["event"] in COMMITS]
    assert {each["event"] for each in ours} == COMMITS
    for each in ours:
        notice = LOG_EVENTS[each.pop("event")]
        assert each.pop("log_level") == notice.level
        assert set(each) == set(notice.keys)
    repeated = [each for each in ours if each.get("commit_id") == "note"]
    assert [each["repeated"] for each in repeated] == [False, True]
    assert repeated[0]["attempts"] == 2, "it lost its first attempt"


def tried(attempts: int, *, committed: bool = False) -> PendingCommit[Any, Any]:
    pending: PendingCommit[Any, Any] = PendingCommit(
        cast("Any", None), Request(commit_id=f"tried-{attempts}", asked="00")
    )
    pending.attempts = attempts
    if committed:
        pending.succeed(Appended(None, attempts))
    return pending


def test_a_loss_is_logged_with_the_transactions_to_retry() -> None:
    table = orders(lake_on(memory()))
    answered = tried(5, committed=True)
    with capture_logs() as events:
        handle_of(table).appender._log_lost_race(LostRace(7), [tried(1), answered, tried(3)])
        handle_of(table).appender._log_lost_race(LostRace(8), [answered])

    assert [each for each in events if each["event"] == "commit_retried"] == [
        {
            "event": "commit_retried",
            "log_level": "info",
            "stream": handle_of(table).log.name,
            "lost_version": 7,
            "attempt": 3,
            "transactions": 2,
        }
    ]


def test_a_loss_is_not_logged_where_no_logger_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []
    monkeypatch.setattr(append, "log_retry", lambda *each: events.append(each))
    table = orders(lake_on(memory()))
    for is_observed in (False, True):
        monkeypatch.setattr(append, "is_observed", lambda is_so=is_observed: is_so)
        handle_of(table).appender._log_lost_race(LostRace(7), [tried(1)])
    assert events == [(handle_of(table).log.name, 7, 1, 1)]


def test_what_readers_get_wrong_of_a_new_table_is_logged() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    with capture_logs() as events:
        lake.create_table("shop.plain", {"a": "INT", "b": "INT"})
        lake.create_table("shop.alike", {"A": "INT", "a": "INT"})

    ours = [each for each in events if each["event"] == "readers_get_it_wrong"]
    assert {each["table"] for each in ours} == {"shop.alike"}
    assert ours[0]["says"].startswith("columns A and a: Spark")
    for each in ours:
        assert set(each) == {"event", "log_level", *LOG_EVENTS["readers_get_it_wrong"].keys}


@pytest.mark.parametrize("name", ["paimon", "iceberg", "delta"])
def test_projections_are_logged_with_the_version_they_reached(name: str) -> None:
    table = orders(lake_on(memory()))
    if name == "delta":
        table.alter([SetOption("ledger.formats", "delta")])
    with capture_logs() as events:
        table.project(name)
        table.project(name)
        table.append([data_file("a.parquet")])
        table.project(name)

    ours = [each for each in events if each["event"] == "files_projected"]
    assert [(each["from_version"], each["version"]) for each in ours] == [
        (-1, table.state.version - 1),
        (table.state.version - 1, table.state.version),
    ]
    for each in ours:
        assert set(each) == {"event", "log_level", *LOG_EVENTS["files_projected"].keys}
        assert each["format"] == name
        assert each["lag_seconds"] >= each["seconds"] - 0.1


def test_author_and_message_are_not_logged() -> None:
    lake = lake_on(memory())
    lake.init(erasable=True)
    table = orders(lake)
    with capture_logs() as events:
        table.alter([SetOption("team", "a")], author="ann@example.org", message="secret-reason")
        with pytest.raises(InvalidChangeError):
            table.alter([AddColumn(("id",), "INT")], author="ann@example.org")

    assert events
    assert not any("ann@" in str(each) or "secret-reason" in str(each) for each in events)


def test_a_line_that_cannot_be_written_fails_no_commit() -> None:
    def broken(*_: object) -> Any:
        raise OSError("the disk of logs is full")

    table = orders(lake_on(memory()))
    structlog.configure(processors=[broken])

    assert table.alter([SetOption("team", "a")]).version == 1


@pytest.fixture(scope="module")
def traced() -> dict[str, Any]:
    """Return what a process that uses OpenTelemetry's SDK collected."""
    found: dict[str, Any] = json.loads(output_of("-m", "tests.observing.traced_worker"))
    return found


def test_commits_and_projections_are_spans_of_the_caller(traced: dict[str, Any]) -> None:
    *ours, around = traced["spans"]
    assert around["name"] == "nightly"
    for each in ours:
        assert each["parent_id"] == around["context"]["span_id"]
        assert set(each["attributes"]) <= set(SPANS[each["name"]])
    commits = [each for each in ours if each["name"] == "lakeledger.commit"]
    outcomes = {each["attributes"]["lakeledger.outcome"] for each in commits}
    assert outcomes == {"committed", "repeated", "conflicted", "refused", "unknown"}
    for each in commits:
        is_committed = each["attributes"]["lakeledger.outcome"] in {"committed", "repeated"}
        assert [said["name"] for said in each["events"]] == ([] if is_committed else ["exception"])
        assert each["status"]["status_code"] == ("UNSET" if is_committed else "ERROR")
    (projected,) = (each for each in ours if each["name"] == "lakeledger.project")
    assert set(projected["attributes"]) == set(SPANS["lakeledger.project"])


def test_metrics_count_what_came_of_commits(traced: dict[str, Any]) -> None:
    points = {each["name"]: each["data"]["data_points"] for each in traced["metrics"]}
    assert points.keys() == METRICS.keys()
    for name, some in points.items():
        assert all(set(each["attributes"]) == set(METRICS[name].keys) for each in some)
    commits = [each for each in traced["spans"] if each["name"] == "lakeledger.commit"]
    by_outcome = {
        each["attributes"]["outcome"]: each["value"] for each in points["lakeledger.commits"]
    }
    events = [each["attributes"]["lakeledger.outcome"] for each in commits]
    assert by_outcome == {each: events.count(each) for each in events}
    assert [each["value"] for each in points["lakeledger.commit.retries"]] == [1]
    assert [each["value"] for each in points["lakeledger.projections"]] == [1]


SILENT = """
import sys, ledger
lake = ledger.open("memory://silent")
lake.create_database("shop")
table = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
table.alter([ledger.SetOption("a", "0")])
calls = []
import threading
def count(frame, event, arg):
    if event == "call" and "observing" in frame.f_code.co_filename:
        calls.append(frame.f_code.co_name)
threading.setprofile_all_threads(count) if hasattr(threading, "setprofile_all_threads") else (
    threading.setprofile(count), sys.setprofile(count))
table.alter([ledger.SetOption("a", "1")])
sys.setprofile(None)
loaded = sorted({each.split(".")[0] for each in sys.modules} & {"structlog", "opentelemetry"})
print(loaded, sorted(calls))
"""


def test_without_a_listener_a_commit_costs_four_calls_and_no_import() -> None:
    assert (
        output_of("-c", SILENT).strip()
        == "[] ['is_log_configured', 'is_observed', 'is_traced', 'traced_commit']"
    )


def test_a_commit_succeeds_while_another_thread_imports_structlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "structlog", ModuleType("structlog"))
    table = orders(lake_on(memory()))

    assert table.alter([SetOption("k", "v")]).version == 1
