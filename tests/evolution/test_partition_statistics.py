"""Statistics that are set for a snapshot: what the log says of them, and when they go."""

from __future__ import annotations

import pytest

from ledger import CommitConflictError, InvalidChangeError, InvalidInputError, NotFoundError, Table
from ledger.events import PartitionStatisticsSet, StatisticsSet
from ledger.log import Commit, Transaction, encode
from ledger.model import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from ledger.state import TableBuilder, TableStream
from ledger.stores import Store
from tests.lakes import data_file, lake_on, memory, orders


def a_table(store: Store | None = None, snapshots: int = 3) -> Table:
    table = orders(lake_on(store or memory()))
    for number in range(snapshots):
        table.append([data_file(f"f{number}.parquet")])
    return table


NDV = BlobMetadata(
    type="apache-datasketches-theta-v1",
    snapshot_id=2,
    sequence_number=2,
    fields=(0,),
    properties={"ndv": "3"},
)


def puffin(table: Table) -> dict[int, str]:
    return {key: each.statistics_path for key, each in table.state.statistics.items()}


def files(table: Table) -> dict[int, PartitionStatisticsFile]:
    return dict(table.state.partition_statistics)


def test_the_log_says_where_the_statistics_of_a_snapshot_stand() -> None:
    table = a_table()

    version = table.set_partition_statistics(2, "metadata/two.parquet", 99).version

    (event,) = next(table.events(version)).transactions[0].events
    assert event == PartitionStatisticsSet(PartitionStatisticsFile(2, "metadata/two.parquet", 99))
    assert encode(Commit(format=3, version=1, time_millis=1, transactions=(_with(event),))) == (
        b'{"format":3,"version":1,"timeMillis":1,"transactions":[{"id":"x","requestDigest":"","events":['
        b'{"type":"setPartitionStatistics","partitionStatistics":{"snapshot-id":2,'
        b'"statistics-path":"metadata/two.parquet","file-size-in-bytes":99}}]}]}\n'
    )
    assert files(table) == {2: PartitionStatisticsFile(2, "metadata/two.parquet", 99)}
    assert table.at(version=version - 1).state.partition_statistics == {}


def _with(event: PartitionStatisticsSet) -> Transaction[PartitionStatisticsSet]:
    return Transaction(asked="", id="x", events=(event,))


def test_a_newer_file_takes_the_place_of_an_older_one_and_the_same_again_is_no_event() -> None:
    table = a_table()
    table.set_partition_statistics(2, "a", 1)
    table.set_partition_statistics(2, "b", 2)

    again = table.set_partition_statistics(2, "b", 2).version

    assert files(table) == {2: PartitionStatisticsFile(2, "b", 2)}
    assert next(table.events(again)).transactions[0].events == ()


def test_statistics_go_when_no_snapshot_or_tag_leads_to_them() -> None:
    table = a_table(snapshots=4)
    for number in range(1, 5):
        table.set_partition_statistics(number, f"s{number}", 1)
    table.create_tag("one", snapshot=1)
    table.create_tag("two", snapshot=2)

    table.expire_snapshots(before=4)
    assert sorted(files(table)) == [1, 2, 4]
    table.delete_tag("one")
    assert sorted(files(table)) == [2, 4]
    table.replace_tag("two", snapshot=4)
    assert sorted(files(table)) == [4]


def test_a_checkpoint_keeps_them() -> None:
    table = a_table()
    table.set_partition_statistics(2, "two", 7)
    stream = TableStream()

    read = stream.decode_state(stream.encode_state(table.state))

    assert read == table.state
    assert TableBuilder(read).freeze() == table.state


@pytest.mark.parametrize("snapshot", [0, 1, 4])
def test_only_a_snapshot_that_can_be_read_gets_statistics(snapshot: int) -> None:
    table = a_table()
    table.expire_snapshots(before=2)

    with pytest.raises(NotFoundError, match="cannot be read"):
        table.set_partition_statistics(snapshot, "x", 1)


@pytest.mark.parametrize(("path", "size"), [("", 1), ("../x", 1), ("x", -1)])
def test_a_path_outside_or_a_negative_size_is_refused(path: str, size: int) -> None:
    with pytest.raises(InvalidInputError):
        a_table().set_partition_statistics(1, path, size)


def test_writers_that_set_the_same_file_both_win_and_others_conflict() -> None:
    store = memory()
    table = a_table(store)
    mine, theirs, third = (lake_on(store).table("shop.orders") for _ in range(3))
    bases = [each.state.version for each in (mine, theirs, third)]
    assert len(set(bases)) == 1

    mine.set_partition_statistics(2, "two", 7)
    theirs.set_partition_statistics(2, "two", 7)
    with pytest.raises(
        CommitConflictError,
        match="statistics file of snapshot 2 was changed by tester in version 4 ",
    ):
        third.set_partition_statistics(2, "other", 8)

    assert files(table) == {2: PartitionStatisticsFile(2, "two", 7)}


def test_statistics_of_a_snapshot_that_expired_meanwhile_are_a_conflict() -> None:
    store = memory()
    table = a_table(store)
    other = lake_on(store).table("shop.orders")
    assert other.state == table.state
    table.expire_snapshots(before=3)

    with pytest.raises(CommitConflictError, match="cannot be read"):
        other.set_partition_statistics(2, "x", 1)


def test_the_log_says_what_a_puffin_file_holds_and_the_same_again_is_no_event() -> None:
    table = a_table()

    version = table.set_statistics(2, "metadata/2.stats", 99, 40, [NDV]).version
    again = table.set_statistics(2, "metadata/2.stats", 99, 40, [NDV]).version

    (event,) = next(table.events(version)).transactions[0].events
    said = StatisticsFile(
        snapshot_id=2,
        statistics_path="metadata/2.stats",
        file_size_in_bytes=99,
        file_footer_size_in_bytes=40,
        blob_metadata=(NDV,),
    )
    assert event == StatisticsSet(said)
    assert table.state.statistics == table.state.puffin_files == {2: said}
    assert table.at(version=version - 1).state.statistics == {}
    assert next(table.events(again)).transactions[0].events == ()
    table.set_statistics(2, "metadata/2-b.stats", 98, 40, [NDV])
    assert puffin(table) == {2: "metadata/2-b.stats"}


def test_puffin_files_go_when_no_snapshot_tag_or_branch_leads_to_them() -> None:
    table = a_table(snapshots=5)
    for number in range(1, 6):
        table.set_statistics(number, f"s{number}", 9, 3, [NDV])
    table.create_tag("one", snapshot=1)
    table.branch("two").create(snapshot=2)

    table.expire_snapshots(before=4)
    assert sorted(puffin(table)) == [1, 2, 4, 5]
    stream = TableStream()
    read = stream.decode_state(stream.encode_state(table.state))
    assert read == table.state
    assert TableBuilder(read).freeze() == table.state

    table.delete_tag("one")
    assert sorted(puffin(table)) == [2, 4, 5]
    table.branch("two").delete()
    assert sorted(puffin(table)) == [4, 5]


@pytest.mark.parametrize(
    "blob",
    [
        BlobMetadata(type=3, snapshot_id=1, sequence_number=1, fields=(0,)),  # type: ignore[arg-type]
        BlobMetadata(type="t", snapshot_id=1, sequence_number=1, fields=(object(),)),  # type: ignore[arg-type]
        BlobMetadata(
            type="t",
            snapshot_id=1,
            sequence_number=1,
            fields=(0,),
            properties={"ndv": 3},  # type: ignore[dict-item]
        ),
        BlobMetadata(type="t", snapshot_id=1, sequence_number=-1, fields=(0,)),
        {"type": "t"},
    ],
)
def test_a_blob_that_no_reader_would_take_is_refused(blob: BlobMetadata) -> None:
    table = a_table()
    with pytest.raises(InvalidInputError):
        table.set_statistics(1, "s", 9, 3, [blob])
    assert table.state.statistics == {}


def test_writers_that_set_different_puffin_files_conflict() -> None:
    store = memory()
    table = a_table(store)
    mine, theirs = (lake_on(store).table("shop.orders") for _ in range(2))
    assert mine.state == theirs.state == table.state

    mine.set_statistics(2, "two", 9, 3, [NDV])
    with pytest.raises(CommitConflictError, match="the Puffin file of snapshot 2 was changed"):
        theirs.set_statistics(2, "other", 9, 3, [NDV])


def test_writers_that_tag_the_same_snapshot_alike_both_win() -> None:
    store = memory()
    table = a_table(store, snapshots=9)
    mine, theirs = (lake_on(store).table("shop.orders") for _ in range(2))
    assert mine.state == theirs.state

    mine.create_tag("nine", snapshot=9, time_retained_millis=10**9)
    theirs.create_tag("nine", snapshot=9, time_retained_millis=10**9)

    assert table.state.tags["nine"].snapshot_id == 9


def test_a_log_that_says_statistics_of_a_snapshot_that_never_was_is_refused() -> None:
    builder = TableBuilder(a_table(snapshots=2).state)
    said = PartitionStatisticsSet(PartitionStatisticsFile(3, "metadata/three.parquet", 9))
    builder.begin(builder.version + 1, builder.effective_millis + 1)
    with pytest.raises(InvalidChangeError, match="snapshot 3"):
        builder.add(_with(said))
