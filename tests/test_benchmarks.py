"""Every benchmark runs, small and without a look at the clock, so that none of them rots."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from attrs import evolve

from benchmarks import (
    audit,
    catalog_feed,
    catalog_size,
    columns,
    commit_kinds,
    commit_latency,
    delta_projection,
    flat,
    following,
    iceberg_projection,
    importing,
    lives,
    newest_entries,
    open_table,
    projection,
    replay,
    scale,
    start,
    verify,
    writers,
)
from benchmarks.committing import KINDS
from benchmarks.history import lake_at
from benchmarks.measure import Spent
from benchmarks.rival_writers import contestants

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")

PAGE = Path(__file__).parents[1] / "ledger/docs/performance.md"
FIGURES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().partition("Profiles of the statistics")[0].splitlines()
    if line.startswith("| ") and "---" not in line
][1:]
COMMANDS = dict.fromkeys(each[-1].strip("`") for each in FIGURES if each[-1] != "the same")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_figure_of_the_page_of_speeds_has_a_command_that_there_is(command: str) -> None:
    python, module, name, *options = command.split()
    assert (python, module) == ("python", "-m")
    main = import_module(name).main
    given = dict(zip(options[::2], options[1::2], strict=True))
    for option, value in given.items():
        parameter = signature(main).parameters[option.removeprefix("--").replace("-", "_")]
        assert type(parameter.default)(value) is not None
    # A change of it is caught by a test that runs it small.
    short = name.rpartition(".")[2]
    tests = (each.read_text() for each in Path(__file__).parent.rglob("test_*.py"))
    assert any(f"{short}.run(" in each or f'"{name}"' in each for each in tests)


def test_commit_latency_makes_the_same_commits_on_every_table(tmp_path: Path) -> None:
    report = commit_latency.run(tmp_path, size=20, repeats=2, width=6)
    assert report.fingerprint == "commits=20 committed=[3]"
    assert all(figure.value > 0 for figure in report.figures)


def test_every_kind_of_commit_is_measured_against_another_version(tmp_path: Path) -> None:
    report = commit_kinds.run(tmp_path, columns=[5], rounds=1, each=2)
    names = {each.name for each in report.figures}
    assert {f"{kind}, 5 columns / raw create" for kind in KINDS} <= names
    here, kinds = Path(__file__).parents[1], ["a tag"]
    beside = commit_kinds.run(
        tmp_path, kinds=kinds, columns=[5], rounds=1, each=2, against=here
    ).figures
    assert [each.name for each in beside][2:] == [
        "a tag, 5 columns: this / that",
        "all kinds, geometric mean: this / that",
    ]
    assert all(figure.value > 0 for figure in report.figures)
    assert not list(tmp_path.iterdir())


def test_what_follows_is_measured_and_gets_there(tmp_path: Path) -> None:
    report = following.run(str(tmp_path), {}, [following.Load("a few", 0.05, 100)], pairs=1)
    assert report.fingerprint == "behind=[0, 0, 0]"
    assert report.value("a few: commits") >= 1


def test_the_feed_of_many_tables_is_measured(tmp_path: Path) -> None:
    report = catalog_feed.run(tmp_path, (10, 200), repeats=2, commits=3)
    assert report.value("200 tables: nothing new, requests") <= catalog_feed.MOST_REQUESTS
    assert report.value("200 tables: longest offset") <= catalog_feed.MOST_BYTES
    assert report.value("a commit, announced, median") > 0


def test_open_table_meets_the_longest_tail(tmp_path: Path) -> None:
    report = open_table.run(tmp_path, sizes=(10, 200), repeats=1, width=6)
    assert report.fingerprint == (
        "(version, columns, snapshot) {10: [(99, 7, 5)], 200: [(299, 7, 100)]}"
    )


def test_start_starts_every_line(tmp_path: Path) -> None:
    report = start.run(tmp_path, repeats=1)
    assert report.fingerprint == "9 lines"
    assert all(figure.value > 0 for figure in report.figures if figure.unit == "x")


def test_columns_compares_each_number_with_the_one_before(tmp_path: Path) -> None:
    report = columns.run(tmp_path, columns=(10, 20), options=(10, 40), repeats=1)
    bounds = {each.name: each.at_most for each in report.figures if each.at_most is not None}
    assert bounds["blame, 20 / 10 columns"] == 1.2 * 2
    assert bounds["open, 40 / 10 options"] == 1.2 * 4
    assert all(each.value > 0 for each in report.figures)


def test_projecting_to_iceberg_is_measured_for_each_kind_of_change(tmp_path: Path) -> None:
    report = iceberg_projection.run(tmp_path, columns=2, sizes=(4, 12), repeats=1)
    names = {each.name for each in report.figures}
    for kind in iceberg_projection.KINDS:
        assert {f"project {kind} at 4", f"project {kind} at 12"} <= names
        assert f"{kind}: written more after the longest history" in names


def test_projecting_to_delta_is_measured_with_its_checkpoints_apart(tmp_path: Path) -> None:
    report = delta_projection.run(tmp_path, sizes=(4, 30), repeats=12)
    names = {each.name for each in report.figures}
    for kind in ("one more", "one more with a checkpoint", "the newest checkpoint"):
        assert {f"{kind} at 4", f"{kind} at 30"} <= names
    assert "one more, long / short" in names


def test_replay_gives_the_state_that_the_seed_gives(tmp_path: Path) -> None:
    report = replay.run(tmp_path, size=250, repeats=1, width=6)
    again = replay.run(tmp_path / "again", size=250, repeats=1, width=6)
    assert report.fingerprint == again.fingerprint
    assert report.fingerprint.endswith("commits=250 columns=6")


def test_verify_meets_the_state_that_replaying_gives(tmp_path: Path) -> None:
    report = verify.run(tmp_path, size=250, repeats=1, width=6)
    replayed = replay.run(tmp_path, size=250, repeats=1, width=6)
    assert replayed.fingerprint.startswith(report.fingerprint)


def test_writers_in_several_processes_lose_nothing(tmp_path: Path) -> None:
    report = writers.run(tmp_path, size=3, processes=(2,), libraries=["lakeledger"])
    assert (
        report.fingerprint
        == "each=3 lakeledger: (processes, accepted, lost)=[(2, 6, 0), (2, 6, 0)]"
    )
    columns, options = report.notes[1].split(), report.notes[3].split()
    assert columns[:6] == options[:6] == ["lakeledger", "2", "6", "6", "0", "0"]


@pytest.mark.parametrize("library", contestants())
def test_every_library_makes_the_changes_that_the_writers_ask_for(
    library: str, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    contestants()[library].create(place, 2)
    writer = contestants()[library].writer(place)
    other = contestants()[library].writer(place)
    writer.add("mine")
    other.refresh()
    other.add("theirs")
    writer.refresh()
    writer.set_option("team.option")
    assert other.names() >= {"c0", "c1", "mine", "theirs", "team.option"}


def test_a_history_is_built_once(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, 10, width=6)
    built = {each: each.stat().st_mtime_ns for each in lake.rglob("*")}
    assert lake_at(tmp_path, 10, width=6) == lake
    assert {each: each.stat().st_mtime_ns for each in lake.rglob("*")} == built


def test_projection_makes_one_commit_of_each_kind_each_time(tmp_path: Path) -> None:
    report = projection.run(tmp_path, sizes=(3, 9), repeats=2)
    # Of the kinds, four make a snapshot: append, delete, analyze, rollback.
    assert report.fingerprint == "snapshots=[11, 17]"
    bounded = [each.name for each in report.figures if each.at_most is not None]
    assert len(bounded) == len(projection.KINDS)


def test_every_operation_is_compared_with_that_of_a_smaller_catalog(tmp_path: Path) -> None:
    report = catalog_size.run(tmp_path, sizes=(10, 30), repeats=1)
    assert report.fingerprint == "tables=[14, 34]"
    assert sum(each.at_most is not None for each in report.figures) == 4


def test_costs_are_counted_at_two_sizes() -> None:
    small = {
        "commits": (3, 5),
        "columns": (2, 4),
        "files of one commit": (20, 40),
        "tables": (4, 9),
    }
    report = scale.run(
        [evolve(each, sizes=small[each.name]) for each in scale.DIMENSIONS], repeats=1
    )
    names = [each.name for each in report.figures]
    assert len(names) == 3 * sum(len(each.operations) for each in scale.DIMENSIONS)
    # One conditional create makes a commit.
    assert any(line.split()[-4:-3] == ["1"] for line in report.notes if "append a file" in line)


def test_flat_compares_every_change_of_every_table(tmp_path: Path) -> None:
    report = flat.run(tmp_path, size=100, repeats=1, short=20)
    assert report.fingerprint == "commits=100 committed=[181, 281]"
    assert all(figure.value > 0 for figure in report.figures)
    assert all(figure.holds for figure in report.figures if figure.name.endswith(", requests"))
    assert sum(flat.AT in figure.name for figure in report.figures) == 3 * (len(lives.KINDS) + 1)
    assert report.figures[-2].name.startswith("worst: ")


def test_audit_asks_the_ledger_and_git_the_same(tmp_path: Path) -> None:
    report = audit.run(tmp_path, size=120, repeats=1, width=6)

    assert report.fingerprint.startswith("version 120")
    assert len(report.figures) == 14
    # What is kept of a log goes with what there is, however many commits there were.
    assert report.value("columns kept for each that there is") == 1


def test_importing_takes_each_snapshot_once(tmp_path: Path) -> None:
    report = importing.run(tmp_path, snapshots=60, schemas=4, repeats=2)
    assert report.fingerprint == "62 and 52 transactions"
    assert all(figure.value > 0 for figure in report.figures if "beyond" not in figure.name)


def test_what_takes_less_than_the_kernel_counts_can_be_a_ratios_floor() -> None:
    spent = Spent(lambda: 0.0)
    with spent.timed():
        pass
    (tick_s,) = spent.cpu_s
    assert 0 < tick_s <= 0.1


def test_the_newest_entries_are_the_same_kind_at_every_number_of_tables(tmp_path: Path) -> None:
    report = newest_entries.run(tmp_path, (10, 20), repeats=1)
    ones = [1] * newest_entries.NEWEST
    assert report.fingerprint == f"versions={ {10: ones, 20: ones} }"
    assert all(figure.value > 0 for figure in report.figures)
