from __future__ import annotations

import hashlib

import pytest

from ledger import DamagedLogError, Move, UnsupportedError, UpgradeRequiredError
from ledger.events import (
    BranchBase,
    BranchCommitted,
    BranchHead,
    CatalogEvent,
    ClockCorrected,
    ColumnAdded,
    ColumnRenamed,
    ColumnUndropped,
    LedgerCopied,
    LedgerMoved,
    PlaceAliased,
    SnapshotCommitted,
    SnapshotRefRemoved,
    SnapshotRefSet,
    TableEvent,
    ValuesErased,
)
from ledger.events.commit import Outside
from ledger.log import Codec, Commit, Transaction, digest, encode
from ledger.model import SnapshotRef

CODEC: Codec[TableEvent] = Codec(TableEvent)

COMMIT: Commit[TableEvent] = Commit(
    format=3,
    version=12,
    time_millis=1741701564261,
    parent="sha256:9f",
    transactions=(
        Transaction(
            asked="",
            id="0198f",
            author="etl@prod",
            message="split the address",
            properties={"a": "1", "b": "2"},
            events=(
                ColumnRenamed(field_names=("addr",), new_name="address", field_id=4),
                ColumnAdded(
                    field_names=("address", "zip"),
                    data_type="STRING",
                    move=Move(field_name="zip", type="FIRST"),
                    field_id=9,
                    parent_id=4,
                ),
                SnapshotCommitted(
                    snapshot_id=1,
                    schema_id=2,
                    commit_user="u",
                    commit_kind="APPEND",
                    total_record_count=3,
                    delta_record_count=3,
                ),
            ),
        ),
    ),
)

GOLDEN = (
    b'{"format":3,"version":12,"timeMillis":1741701564261,"parent":"sha256:9f",'
    b'"transactions":[{"id":"0198f","author":"etl@prod","message":"split the address",'
    b'"properties":{"a":"1","b":"2"},"requestDigest":"","events":['
    b'{"type":"renameColumn","fieldNames":["addr"],"newName":"address","fieldId":4},'
    b'{"type":"addColumn","fieldNames":["address","zip"],"dataType":"STRING",'
    b'"move":{"fieldName":"zip","type":"FIRST"},"fieldId":9,"parentId":4},'
    b'{"type":"commitSnapshot","snapshotId":1,"schemaId":2,"commitUser":"u",'
    b'"totalRecordCount":3,"deltaRecordCount":3,"commitKind":"APPEND"}]}]}\n'
)


CLOCKS: Commit[TableEvent] = Commit(
    format=3,
    version=13,
    time_millis=1741701564261,
    parent="sha256:9f",
    transactions=(
        Transaction(
            asked="",
            id="0198f",
            effective_time_millis=1741701564200,
            events=(
                ClockCorrected(first_version=12, true_time_millis=1741701564199),
                ColumnUndropped(
                    field_names=("address", "zip"),
                    data_type="STRING",
                    comment="five digits",
                    move=Move("zip", "AFTER", "city"),
                    default_value="0",
                    initial_default="1",
                    field_id=9,
                    parent_id=4,
                ),
            ),
        ),
    ),
)
BRANCHES: Commit[TableEvent] = Commit(
    format=3,
    version=4,
    time_millis=7,
    parent="sha256:9f",
    transactions=(
        Transaction(
            asked="",
            id="0198f",
            events=(
                SnapshotRefSet(
                    "audit",
                    SnapshotRef(snapshot_id=1, type="branch", min_snapshots_to_keep=3),
                    BranchBase(version=1, record_count=2, file_size_in_bytes=80, file_count=1),
                ),
                BranchCommitted(
                    snapshot_id=1_000_000_000_001,
                    schema_id=0,
                    commit_user="u",
                    commit_kind="APPEND",
                    total_record_count=5,
                    delta_record_count=3,
                    branch_name="audit",
                    parent_snapshot_id=1,
                ),
                BranchCommitted(
                    snapshot_id=1_000_000_000_002,
                    schema_id=0,
                    commit_user="u",
                    commit_kind="OVERWRITE",
                    total_record_count=2,
                    delta_record_count=-3,
                    branch_name="audit",
                    parent_snapshot_id=1_000_000_000_001,
                    target_snapshot_id=1,
                ),
                SnapshotCommitted(
                    snapshot_id=2,
                    schema_id=0,
                    commit_user="u",
                    commit_kind="APPEND",
                    total_record_count=2,
                    delta_record_count=0,
                    fast_forward_to=BranchHead("audit", 1_000_000_000_002),
                ),
                SnapshotRefRemoved("audit"),
            ),
        ),
    ),
)
GOLDEN_BRANCHES = (
    b'{"format":3,"version":4,"timeMillis":7,"parent":"sha256:9f",'
    b'"transactions":[{"id":"0198f","requestDigest":"","events":['
    b'{"type":"setSnapshotRef","refName":"audit","ref":{"snapshot-id":1,"type":"branch",'
    b'"min-snapshots-to-keep":3},"base":{"version":1,"recordCount":2,"fileSizeInBytes":80,'
    b'"fileCount":1}},'
    b'{"type":"commitToBranch","snapshotId":1000000000001,"schemaId":0,"commitUser":"u",'
    b'"totalRecordCount":5,"deltaRecordCount":3,"commitKind":"APPEND","branchName":"audit",'
    b'"parentSnapshotId":1},'
    b'{"type":"commitToBranch","snapshotId":1000000000002,"schemaId":0,"commitUser":"u",'
    b'"totalRecordCount":2,"deltaRecordCount":-3,"commitKind":"OVERWRITE","branchName":"audit",'
    b'"parentSnapshotId":1000000000001,"targetSnapshotId":1},'
    b'{"type":"commitSnapshot","snapshotId":2,"schemaId":0,"commitUser":"u",'
    b'"totalRecordCount":2,"deltaRecordCount":0,"commitKind":"APPEND",'
    b'"fastForwardTo":{"branchName":"audit","snapshotId":1000000000002}},'
    b'{"type":"removeSnapshotRef","refName":"audit"}]}]}\n'
)
GOLDEN_CLOCKS = (
    b'{"format":3,"version":13,"timeMillis":1741701564261,"parent":"sha256:9f",'
    b'"transactions":[{"id":"0198f","requestDigest":"","effectiveTimeMillis":1741701564200,"events":['
    b'{"type":"correctClock","firstVersion":12,"trueTimeMillis":1741701564199},'
    b'{"type":"undropColumn","fieldNames":["address","zip"],"dataType":"STRING",'
    b'"comment":"five digits",'
    b'"move":{"fieldName":"zip","type":"AFTER","referenceFieldName":"city"},"defaultValue":"0",'
    b'"initialDefault":"1","fieldId":9,"parentId":4}]}]}\n'
)
PLACES: Commit[CatalogEvent] = Commit(
    format=3,
    version=1,
    time_millis=7,
    parent="sha256:9f",
    transactions=(
        Transaction(
            asked="",
            id="0198f",
            events=(
                LedgerMoved("s3://b/lake"),
                PlaceAliased("/mnt/lake"),
                LedgerCopied(place="/copy", ledger_id="y", copied_from="x", without=("t",)),
            ),
        ),
    ),
)
GOLDEN_PLACES = (
    b'{"format":3,"version":1,"timeMillis":7,"parent":"sha256:9f","transactions":['
    b'{"id":"0198f","requestDigest":"","events":[{"type":"moveLedger","location":"s3://b/lake"},'
    b'{"type":"aliasLedger","location":"/mnt/lake"},{"type":"copyLedger","location":"/copy",'
    b'"ledgerId":"y","copiedFrom":"x","excludedTableIds":["t"]}]}]}\n'
)
ERASING: Commit[CatalogEvent] = Commit(
    format=3,
    version=1,
    time_millis=7,
    parent="sha256:9f",
    transactions=(
        Transaction(
            id="0198f",
            outside=Outside(author="aa", message="bb", properties="cc"),
            asked="dd",
            events=(ValuesErased(values=3, transactions=1),),
        ),
        Transaction(asked="", id="0199a", outside=Outside()),
    ),
)
GOLDEN_ERASING = (
    b'{"format":3,"version":1,"timeMillis":7,"parent":"sha256:9f","transactions":['
    b'{"id":"0198f","sidecar":{"author":"aa","message":"bb","properties":"cc"},"requestDigest":"dd",'
    b'"events":[{"type":"eraseValues","values":3,"transactions":1}]},{"id":"0199a","sidecar":{},"requestDigest":""}'
    b"]}\n"
)


def test_a_commits_bytes_with_values_outside_are_frozen() -> None:
    assert encode(ERASING) == GOLDEN_ERASING
    assert Codec(CatalogEvent).decode(GOLDEN_ERASING, "file") == ERASING


def test_a_value_outside_of_a_kind_that_is_not_known_asks_for_an_upgrade() -> None:
    newer = GOLDEN_ERASING.replace(b'"message":"bb"', b'"bounds":"bb"')
    with pytest.raises(UpgradeRequiredError, match="the sidecar key 'bounds'"):
        Codec(CatalogEvent).decode(newer, "file")
    for broken in (b'"sidecar":null', b'"sidecar":[]', b'"sidecar":{"author":1}'):
        with pytest.raises(DamagedLogError):
            Codec(CatalogEvent).decode(GOLDEN_ERASING.replace(b'"sidecar":{}', broken), "file")


def test_a_commits_bytes_are_frozen() -> None:
    assert encode(COMMIT) == GOLDEN


def test_other_commits_bytes_are_frozen() -> None:
    assert encode(CLOCKS) == GOLDEN_CLOCKS
    assert encode(PLACES) == GOLDEN_PLACES
    assert Codec[CatalogEvent](CatalogEvent).decode(GOLDEN_PLACES, "1.json") == PLACES
    assert encode(CODEC.decode(GOLDEN_CLOCKS, "file")) == GOLDEN_CLOCKS
    assert encode(BRANCHES) == GOLDEN_BRANCHES
    assert CODEC.decode(GOLDEN_BRANCHES, "file") == BRANCHES


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            GOLDEN[: GOLDEN.index(b'"transactions"')] + b'"transactions":[]}\n',
            "no transaction, and",
        ),
        (GOLDEN.replace(b'"format":3', b'"format":0'), "format 0, which never existed"),
        (GOLDEN.replace(b'"format":3', b'"format":2'), "format 2, which was never released"),
        (GOLDEN.replace(b'"format":3', b'"format":4'), "format 4; this version reads format 3"),
    ],
)
def test_a_reader_rejects_an_empty_commit_and_one_of_an_unknown_format(
    body: bytes, says: str
) -> None:
    for read in (CODEC.decode, CODEC.decode_with_raw_events, CODEC.sketch):
        with pytest.raises((DamagedLogError, UnsupportedError, UpgradeRequiredError), match=says):
            read(body, "file")
    assert CODEC.known(body) is None
    assert CODEC.decode_all([GOLDEN, body]) is None


def test_a_commit_read_back_is_the_same() -> None:
    assert encode(CODEC.decode(GOLDEN, "file")) == GOLDEN


def test_a_digest_is_the_sha_256_of_the_file() -> None:
    assert digest(GOLDEN) == "sha256:" + hashlib.sha256(GOLDEN).hexdigest()


@pytest.mark.parametrize("cut", [1, 10, 100, len(GOLDEN) - 2])
def test_a_torn_file_is_refused_by_name(cut: int) -> None:
    with pytest.raises(DamagedLogError, match=r"log/7\.json is torn") as caught:
        CODEC.decode(GOLDEN[:cut], "log/7.json")
    assert caught.value.file == "log/7.json"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"format":3', b'"format":4', "format 4"),
        (b'"type":"renameColumn"', b'"type":"mergeColumns"', "the event 'mergeColumns'"),
        (b'"newName":"address"', b'"newName":"address","why":1', "the renameColumn key 'why'"),
        (b'"author"', b'"signature":"x","author"', "the transaction key 'signature'"),
        (b'"version":12', b'"version":12,"branch":"b"', "the key 'branch'"),
    ],
)
def test_what_a_newer_version_wrote_asks_for_an_upgrade(old: bytes, new: bytes, what: str) -> None:
    with pytest.raises(UpgradeRequiredError, match="upgrade lakeledger") as caught:
        CODEC.decode(GOLDEN.replace(old, new), "file")
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"fieldId":4', b'"fieldId":"four"'),
        (b'"newName":"address",', b""),
        (b'"transactions":[', b'"transactions":['[:-1] + b"{"),
        (b"STRING", b"\xff\xff"),
    ],
)
def test_what_fits_no_version_is_damage(old: bytes, new: bytes) -> None:
    with pytest.raises(DamagedLogError, match="file"):
        CODEC.decode(GOLDEN.replace(old, new), "file")


LISTING = GOLDEN.replace(
    b'"commitKind":"APPEND"}',
    b'"commitKind":"APPEND","files":[{"path":"a.parquet","recordCount":3,"fileSizeInBytes":9}]}',
)


def test_a_byte_that_is_no_text_is_damage_wherever_it_stands() -> None:
    # Lists of files, and keys that are not requested, are passed over by decoders of a line.
    readers = (CODEC.decode, CODEC.decode_with_raw_events, CODEC.sketch)
    for read in readers:
        read(LISTING, "12.json")
    assert CODEC.decode_all([LISTING]) == [CODEC.known(LISTING)] != [None]
    for place in range(len(LISTING)):
        body = LISTING[:place] + b"\xb0" + LISTING[place + 1 :]
        for read in readers:
            with pytest.raises(DamagedLogError):
                read(body, "12.json")
        assert CODEC.decode_all([LISTING, body]) is None
        assert CODEC.known(body) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b""),
        (b'"format":3', b'"format":2'),
        (b'"format":3', b'"format":4'),
        (b'"type":"renameColumn"', b'"type":"mergeColumns"'),
        (b'"newName":"address",', b""),
        (b'"version":12', b'"version":12,"branch":"b"'),
        (GOLDEN[GOLDEN.index(b'"transactions"') :], b'"transactions":[]}\n'),
        (GOLDEN, b""),
        (GOLDEN, b"[" * 100_000),
    ],
)
def test_what_is_known_is_what_is_decoded(old: bytes, new: bytes) -> None:
    body = GOLDEN.replace(old, new) if old else GOLDEN
    known = CODEC.known(body)
    assert CODEC.decode_all([body]) == (None if known is None else [known])
    if known is not None:
        assert CODEC.decode(body, "file") == known
        return
    with pytest.raises((DamagedLogError, UnsupportedError, UpgradeRequiredError)):
        CODEC.decode(body, "file")
