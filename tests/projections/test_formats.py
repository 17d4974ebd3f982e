"""A format is found by its package's entry point, asked like any other, and never guessed at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ledger
from ledger import (
    AddColumn,
    DamagedLogError,
    DropColumn,
    FileChange,
    FormatError,
    InvalidChangeError,
    Ledger,
    MissingDependencyError,
    RemoveOption,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UnsupportedError,
    UpdateComment,
    formats,
)
from ledger.cli import main
from ledger.decide.format_rules import FileForm
from ledger.events import FormatRulesRaised, TableEvent
from ledger.log import Commit, Transaction
from ledger.model import BlobMetadata
from ledger.model.plugins import PluginEntryPoint
from ledger.state import TableBuilder, TableStream
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.statistics import Kept
from projections.statistics.engine_files import EngineFiles
from projections.statistics.query import totals
from tests.lakes import lake_on, memory
from tests.programs import output_of
from tests.toy_format import ToyRules

ALL = "paimon,iceberg,toy"
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Give a function that installs packages, by name, each with an entry point of one format."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(format_name: str = "toy", **packages: str) -> None:
        for name, value in packages.items():
            folder = tmp_path / f"{name}-1.0.dist-info"
            folder.mkdir(exist_ok=True)
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            line = f"[{formats.FORMATS}]\n{format_name} = {value}\n"
            (folder / "entry_points.txt").write_text(line)
        formats.forget()

    yield installed
    monkeypatch.undo()
    formats.forget()


def uninstall(tmp_path: Path, *packages: str) -> None:
    for name in packages:
        (tmp_path / f"{name}-1.0.dist-info" / "entry_points.txt").write_text("")
    formats.forget()


def lake() -> Ledger:
    made = lake_on(memory())
    made.create_database("shop")
    return made


def table_of(declared: str = ALL) -> Table:
    schema = Schema.of({"id": "INT", "day": "DATE"}, options={"ledger.formats": declared})
    return lake().create_table("shop.t", schema)


def file(name: str) -> FileChange:
    return FileChange(path=name, record_count=1, file_size_in_bytes=1, field_ids=True)


def tagged() -> Table:
    """Return a table of two snapshots, the newest of which has a tag."""
    table = table_of()
    table.append([file("a.parquet")])
    table.append([file("b.parquet")])
    table.create_tag("one")
    return table


def test_a_third_format_validates_every_kind_of_change_and_is_named_in_the_error(
    install: Install,
) -> None:
    install(toys="tests.toy_format:TOY")
    table = table_of()
    table.append([file("a.parquet")])
    refusals: dict[str, Callable[[], object]] = {
        "column toy: no column is a toy": lambda: table.alter([AddColumn(("toy",), "INT")]),
        "file toy.parquet: toys come in no files": lambda: table.append([file("toy.parquet")]),
        "tag toy: no toy has a tag": lambda: table.create_tag("toy"),
        "option toy.color: toys are not grey": lambda: table.alter(
            [SetOption("toy.color", "grey")]
        ),
    }
    for said, refused in refusals.items():
        with pytest.raises(FormatError, match=f"^{said}") as caught:
            refused()
        assert caught.value.format == "toy"
        assert caught.value.alternative.endswith(
            "or leave format 'toy': set ledger.formats=paimon,iceberg"
        )
    with pytest.raises(FormatError, match="no column is a toy"):
        lake().create_table("shop.t", Schema.of({"toy": "INT"}, options={"ledger.formats": ALL}))
    verdicts = {each.format: each for each in table.plan([AddColumn(("toy",), "INT")]).verdicts}
    assert [*verdicts] == ["paimon", "iceberg", "delta", "toy"]
    assert [each.is_allowed for each in verdicts.values()] == [True, True, True, False]


def test_declaring_a_format_validates_the_current_state(install: Install) -> None:
    install(toys="tests.toy_format:TOY")
    table = table_of("paimon,iceberg")
    table.alter([AddColumn(("toy",), "INT")])
    with pytest.raises(FormatError, match="no column is a toy"):
        table.alter([SetOption("ledger.formats", ALL)])
    table.alter([DropColumn(("toy",)), SetOption("ledger.formats", ALL)])


def test_no_type_is_taken_that_the_files_of_two_formats_hold_otherwise(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(toys="tests.toy_format:PICKY")
    iceberg = formats.INSTALLED.find("iceberg")
    forms = {"DATE": FileForm("days", "take INT")}
    monkeypatch.setattr(iceberg, "file_forms", forms, raising=False)
    rule = "column day: Iceberg's files keep a DATE as days, and Toy's as text"
    with pytest.raises(FormatError, match=rule):
        table_of("iceberg,toy")
    with pytest.raises(FormatError, match=rule):
        table_of("iceberg").alter([SetOption("ledger.formats", "iceberg,toy")])
    assert table_of("paimon,toy").state.version == 0


def test_a_declared_format_that_is_not_installed_rejects_what_could_concern_it(
    install: Install, tmp_path: Path
) -> None:
    install(toys="tests.toy_format:TOY")
    table = tagged()
    uninstall(tmp_path, "toys")
    version = table.state.version
    asked: tuple[Callable[[], object], ...] = (
        lambda: table.alter([AddColumn(("b",), "INT")]),
        lambda: table.alter([UpdateComment("why")]),
        lambda: table.alter([SetOption("write.target", "1")]),
        lambda: table.append([file("c.parquet")]),
        lambda: table.delete_files(["a.parquet"]),
        lambda: table.rollback(snapshot=1),
        lambda: table.create_tag("two"),
        lambda: table.replace_tag("one"),
    )
    for refused in asked:
        with pytest.raises(FormatError, match="no installed package provides") as caught:
            refused()
        assert "set ledger.formats=paimon,iceberg" in caught.value.alternative
    assert table.state.version == version
    missing = table.plan([AddColumn(("b",), "INT")]).verdicts[-1]
    assert (missing.format, missing.is_declared, missing.is_allowed) == ("toy", True, False)


def test_what_concerns_no_format_needs_none(install: Install, tmp_path: Path) -> None:
    install(toys="tests.toy_format:TOY", games="tests.toy_format:TOY")
    uninstall(tmp_path, "games")
    opened = lake()
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": ALL})
    table = opened.create_table("shop.t", schema)
    for name in ("a", "b"):
        table.append([file(f"{name}.parquet")])
    table.create_tag("one")
    uninstall(tmp_path, "toys")

    assert opened.table("shop.t").at(version=1).totals.record_count == 1
    table.delete_tag("one")
    table.expire_snapshots(before=2)
    leave = SetOption("ledger.formats", "paimon,iceberg")
    assert table.alter([leave, AddColumn(("b",), "INT")]).state.schema.names == ("id", "b")
    table.append([file("c.parquet")])
    opened.create_table("shop.u", Schema.of({"id": "INT"}))
    opened.drop_table("shop.t")


def test_one_of_two_formats_that_are_missing_can_be_left(install: Install, tmp_path: Path) -> None:
    install(toys="tests.toy_format:TOY")
    install("game", games="tests.toy_format:TOY")
    table = table_of("paimon,toy,game")
    uninstall(tmp_path, "toys", "games")
    with pytest.raises(FormatError):
        table.alter([SetOption("ledger.formats", "paimon,toy"), UpdateComment("why")])
    table.alter([SetOption("ledger.formats", "paimon,toy")])
    table.alter([RemoveOption("ledger.formats")])
    table.append([file("a.parquet")])


@pytest.mark.parametrize("declared", ["toy", "paimon,toy", "", "paimon,"])
def test_an_unknown_format_is_rejected_when_declared(install: Install, declared: str) -> None:
    install()
    said = "name one or more of paimon, iceberg.* separated by commas"
    with pytest.raises(InvalidChangeError, match=said):
        table_of(declared)
    table = table_of("paimon")
    for asked in (table.alter, table.plan):
        with pytest.raises(InvalidChangeError, match=said):
            asked([SetOption("ledger.formats", declared)])


def test_two_packages_that_bring_one_name_are_rejected_and_named(install: Install) -> None:
    install(toys="tests.toy_format:TOY")
    table = table_of()
    install(games="tests.toy_format:NEWER")
    with pytest.raises(
        FormatError, match="2 installed packages provide .* games .* toys "
    ) as caught:
        table.append([file("a.parquet")])
    assert caught.value.alternative.startswith("uninstall all but one, or leave format 'toy'")
    with pytest.raises(FormatError, match="2 installed packages"):
        table_of()
    table_of("paimon,iceberg").append([file("a.parquet")])


def test_a_table_records_the_highest_rules_and_lower_ones_say_upgrade(install: Install) -> None:
    install(toys="tests.toy_format:TOY")
    table = table_of()
    table.append([file("a.parquet")])
    assert table.state.format_rules == {}
    install(toys="tests.toy_format:NEWER")
    table.append([file("b.parquet")])
    table.append([file("c.parquet")])
    raised = [each for each in events(table) if isinstance(each, FormatRulesRaised)]
    assert raised == [FormatRulesRaised(rules={"toy": 2})]
    assert table.state.format_rules == {"toy": 2}
    stream = TableStream()
    assert stream.decode_state(stream.encode_state(table.state)) == table.state

    install(toys="tests.toy_format:TOY")
    version = table.state.version
    asked: tuple[Callable[[], object], ...] = (
        lambda: table.append([file("d.parquet")]),
        lambda: table.alter([AddColumn(("b",), "INT")]),
        lambda: table.create_tag("one"),
    )
    for refused in asked:
        with pytest.raises(FormatError, match="by rules 2 of it, and the installed ones are 1; up"):
            refused()
    assert table.state.version == version
    table.alter([SetOption("ledger.formats", "paimon,iceberg")])
    table.append([file("d.parquet")])


BLOB = BlobMetadata(type="t", snapshot_id=2, sequence_number=2, fields=(0,))
OF_WHAT_IT_HOLDS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append([file("c.parquet")]),
    "delete files": lambda table: table.delete_files(["a.parquet"]),
    "roll back": lambda table: table.rollback(snapshot=1),
    "create a tag": lambda table: table.create_tag("two", snapshot=1),
    "replace a tag": lambda table: table.replace_tag("one", snapshot=1),
    "delete a tag": lambda table: table.delete_tag("one"),
    "expire": lambda table: table.expire_snapshots(before=2),
    "create a branch": lambda table: table.create_branch("new"),
    "reset a branch": lambda table: table.branch("audit").reset(snapshot=1),
    "append to a branch": lambda table: table.branch("audit").append([file("c.parquet")]),
    "fast-forward": lambda table: table.branch("audit").fast_forward(),
    "delete a branch": lambda table: table.branch("audit").delete(),
    "partition statistics": lambda table: table.set_partition_statistics(2, "statistics/p", 9),
    "correct the clock": lambda table: table.correct_clock(table.at(version=0).state.time_millis),
    "statistics": lambda table: table.set_statistics(2, "metadata/s.stats", 9, 4, [BLOB]),
}


@pytest.mark.parametrize("act", OF_WHAT_IT_HOLDS.values(), ids=OF_WHAT_IT_HOLDS.keys())
def test_rules_are_recorded_by_the_first_change_that_their_format_was_asked_about(
    install: Install, monkeypatch: pytest.MonkeyPatch, act: Callable[[Table], object]
) -> None:
    install(toys="tests.toy_format:TOY")
    table = tagged()
    table.create_branch("audit")
    table.branch("audit").append([file("on_branch.parquet")])
    asked: list[str] = []

    def noting(name: str) -> None:
        asks = getattr(ToyRules, name)

        def noted(self: ToyRules, *given: object) -> object:
            asked.append(name)
            return asks(self, *given)

        monkeypatch.setattr(ToyRules, name, noted)

    install(toys="tests.toy_format:NEWER")
    for each in ("file_problems", "tag_problems", "name_problems", "problems", "last_problems"):
        noting(each)
    version = table.state.version
    act(table)

    since = [each for each in table.events() if each.version > version]
    raised = [
        event
        for commit in since
        for transaction in commit.transactions
        for event in transaction.events
        if isinstance(event, FormatRulesRaised)
    ]
    assert since
    assert bool(raised) == bool(asked)


def test_rules_never_go_down_in_a_log(install: Install) -> None:
    install(toys="tests.toy_format:NEWER")
    table = table_of()
    table.append([file("a.parquet")])
    for rules in ({"toy": 2}, {"paimon": 1}):
        builder = TableBuilder(table.state)
        transaction: Transaction[TableEvent] = Transaction(
            asked="", id="x", events=(FormatRulesRaised(rules=rules),)
        )
        with pytest.raises(InvalidChangeError, match="are not higher than"):
            builder.commit(
                Commit(
                    format=3,
                    version=table.state.version + 1,
                    time_millis=table.state.time_millis + 1,
                    transactions=(transaction,),
                )
            )


def events(table: Table) -> list[TableEvent]:
    return [
        event
        for commit in table.events()
        for transaction in commit.transactions
        for event in transaction.events
    ]


def test_a_package_that_is_on_the_path_twice_brings_its_format_once() -> None:
    one = PluginEntryPoint("toy", "tests.toy_format:TOY", "toys")
    assert formats.by_name([one, one]) == {"toy": (one,)}


def test_one_entry_point_brings_all_of_a_format_and_imports_what_is_asked_for() -> None:
    program = (
        "import sys; from ledger.formats import INSTALLED, having; INSTALLED.names(); "
        "print(having('kept'), having('scan'), *(m for m in sys.modules if 'projections' in m))"
    )
    printed = output_of("-c", program)
    assert "['delta', 'iceberg', 'paimon'] ['iceberg']" in printed
    assert "rules" not in printed
    assert "materialise" not in printed
    for each in ("delta", "iceberg", "paimon"):
        assert formats.part(each, "kept").format.name == each


PROJECTED = {"paimon": "a Paimon", "iceberg": "an Iceberg", "delta": "a Delta"}


def _undeclared(name: str) -> str:
    return f"shop.t is not declared to be {PROJECTED[name]} table: add {name} to its option"


@pytest.mark.parametrize("name", PROJECTED)
def test_no_format_has_files_of_a_table_that_does_not_declare_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "lake")
    opened = ledger.open(root)
    opened.create_database("shop")
    others = ",".join(each for each in PROJECTED if each != name)
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": others})
    table = opened.create_table("shop.t", schema)
    table.append([file("a.parquet")])
    kept = formats.part(name, "kept")
    asked: tuple[Callable[[], object], ...] = (
        lambda: table.project(name),
        lambda: table.project(name, version=1),
        lambda: kept.advance(handle_of(table)),
        lambda: next(kept.follow(handle_of(table))),
        lambda: kept.rebuild(handle_of(table)),
        lambda: kept.expected(handle_of(table)),
        lambda: kept.replay(handle_of(table), LocalStore(tmp_path / "elsewhere"), version=1),
    )
    for refused in asked:
        with pytest.raises(UnsupportedError, match=f"^{_undeclared(name)} ledger.formats$"):
            refused()
    for flags in ((), ("--follow",), ("--rebuild",)):
        assert main(["project", name, "shop.t", "--ledger", root, *flags]) != 0
        assert _undeclared(name) in capsys.readouterr().err
    assert kept.verify(handle_of(table)).is_empty
    assert not kept.has_files(handle_of(table))


@pytest.mark.parametrize("name", PROJECTED)
def test_existing_files_stay_sound_when_their_format_is_no_longer_declared(
    name: str, tmp_path: Path
) -> None:
    opened = ledger.open(tmp_path / "lake")
    opened.create_database("shop")
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": ",".join(PROJECTED)})
    table = opened.create_table("shop.t", schema)
    table.append([file("a.parquet")])
    version, kept = table.project(name), formats.part(name, "kept")
    stands = sorted(kept.expected(handle_of(table)))
    others = ",".join(each for each in PROJECTED if each != name)
    table.alter([SetOption("ledger.formats", others)])
    with pytest.raises(UnsupportedError, match=_undeclared(name)):
        table.project(name)
    assert kept.verify(handle_of(table)).is_empty
    place = Path(table.location.removeprefix("file://"))
    lost = stands[-1]
    (place / lost).unlink()
    assert kept.verify(handle_of(table)).missing == (lost,)
    kept.rebuild(handle_of(table))
    assert kept.verify(handle_of(table)).is_empty
    assert kept.freshness(handle_of(table)).version == version


def test_the_error_of_a_missing_part_names_the_formats_that_have_it(install: Install) -> None:
    install(toys="tests.toy_format:TOY")
    assert "toy" in formats.INSTALLED.names()
    assert "toy" not in formats.having("project")
    with pytest.raises(
        MissingDependencyError, match="^toy has no files of its own; these do: delta, iceb"
    ):
        table_of().project("toy")
    install(others="tests.toy_format:TOY")
    with pytest.raises(MissingDependencyError, match="2 installed packages provide rules"):
        formats.part("toy", "project")


def test_a_format_that_cannot_be_imported_rejects_with_the_reason(install: Install) -> None:
    install(toys="tests.no_such_module:TOY")
    with pytest.raises(FormatError, match="cannot be loaded: No module named .*reinstall .*toys"):
        table_of()


def test_manifests_of_a_third_formats_engine_are_counted(install: Install) -> None:
    install(toys="tests.toy_format:COUNTED")
    table = table_of()
    files = EngineFiles.of(handle_of(table).log)
    for number, rows in ((1, 5), (2, 7)):
        handle_of(table).log.store.create(files.key(f"{number}.toys"), b'[["toys/%d", 1]]' % number)
        handle_of(table).log.store.create(
            files.key(f"toys/{number}"), b'[["a.parquet", %d]]' % rows
        )
        facts = {"base_manifest_list": f"{number}.toys"}
        table.commit_snapshot(SnapshotPlan("APPEND", commit_user="toys", facts=facts))
    found = totals(Kept.of(handle_of(table).log), table.at())
    assert [each.record_count for each in found] == [5, 12]
    assert [each.file_count for each in found] == [1, 2]

    install(toys="tests.toy_format:TOY")
    with pytest.raises(DamagedLogError, match=r"1\.toys"):
        totals(Kept.of(handle_of(table).log), table.at())


def test_a_third_format_publishes_statistics_after_a_format_that_adds_a_snapshot(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(toys="tests.toy_format:COUNTED")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.t", Schema.of({"id": "INT"})).append([file("a.parquet")])
    both = ("--publish", "toy", "--publish", "paimon")
    assert main(["stats", "shop.t", "--ledger", str(tmp_path / "lake"), *both]) == 0
    published = [each for each in capsys.readouterr().out.splitlines() if "published" in each]
    assert "published for paimon, of snapshot 1: " in published[0]
    assert published[1:] == ["published for toy, of snapshot 2: toys/1"]

    assert main(["stats", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Paimon's ANALYZE; or how many toys there are; repeatable." in said
    assert "[choices: iceberg, paimon, toy]" in said
