"""Laws of a whole table's fold, over random histories of schema changes, snapshots and tags."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from ledger import InvalidInputError, NotFoundError, Table
from ledger.log import encode
from ledger.state import TableBuilder, TableStream
from tests.histories import random_changes, start_schema
from tests.lakes import data_file, lake_on, memory

STREAM = TableStream()


def random_table(seed: int, steps: int) -> Table:
    rng = random.Random(seed)
    lake = lake_on(memory())
    lake.create_database("db")
    schema = start_schema()
    # Paimon alone lets more happen.
    formats = {"ledger.formats": "paimon"} if seed % 2 else {}
    table = lake.create_table("db.t", schema.with_options({**schema.options, **formats}))
    for number in range(steps):
        try:
            step(table, rng, number)
        except (InvalidInputError, NotFoundError):
            continue
    return table


def step(table: Table, rng: random.Random, number: int) -> None:
    state = table.state
    spec = state.spec
    partition = tuple("p" for _ in spec.fields)
    match rng.randrange(8):
        case 0 | 1 | 2:
            changes = random_changes(rng, state.schema, length=rng.randrange(1, 4))
            table.alter(changes)
        case 3 | 4:
            file = data_file(f"f{number}.parquet", records=rng.randrange(1, 9))
            table.append([replace(file, partition=partition)])
        case 5:
            table.create_tag(f"t{number}")
        case 6:
            table.rollback(snapshot=rng.randint(1, max(1, state.last_snapshot_id)))
        case _:
            live = [each.path for each in table.at().files]
            table.delete_files(rng.sample(live, min(len(live), 1)))


@pytest.mark.parametrize("seed", range(25))
def test_folding_a_prefix_and_then_the_rest_equals_folding_all(seed: int) -> None:
    table = random_table(seed, 30)
    commits = list(table.events())
    whole = TableBuilder()
    for commit in commits:
        whole.commit(commit)
    cut = random.Random(seed).randrange(1, len(commits) + 1)
    prefix = TableBuilder()
    for commit in commits[:cut]:
        prefix.commit(commit)
    record = STREAM.encode_state(prefix.freeze())
    rest = TableBuilder(STREAM.decode_state(record))
    for commit in commits[cut:]:
        rest.commit(commit)

    assert rest.freeze() == whole.freeze() == table.state
    assert STREAM.encode_state(rest.freeze()) == STREAM.encode_state(whole.freeze())


@pytest.mark.parametrize("seed", range(25))
def test_ids_never_come_back(seed: int) -> None:
    table = random_table(seed, 30)
    seen: dict[int, int] = {}
    highest = -1
    before: set[int] = set()
    for version in range(table.state.version + 1):
        schema = table.at(version=version).schema
        ids = {each.id for each in schema.fields}
        for new in ids - before:
            assert new not in seen, f"id {new} came back in version {version}"
            seen[new] = version
        before = ids
        assert schema.highest_field_id >= highest
        highest = schema.highest_field_id


@pytest.mark.parametrize("seed", range(10))
def test_totals_are_the_sums_over_the_live_files_at_every_version(seed: int) -> None:
    table = random_table(seed, 30)
    for version in range(table.state.version + 1):
        then = table.at(version=version)
        files = then.files
        assert then.totals.record_count == sum(each.record_count for each in files)
        assert then.totals.file_count == len(files)
        assert then.totals.file_size_in_bytes == sum(each.file_size_in_bytes for each in files)
        if then.snapshot is not None:
            assert then.snapshot.total_record_count == then.totals.record_count


@pytest.mark.parametrize("seed", range(5))
def test_the_same_history_gives_the_same_bytes(seed: int) -> None:
    def facts(table: Table) -> list[bytes]:
        # Table and commit ids are fresh for every history; everything else is a function of it.
        return [
            encode(commit).replace(commit.transactions[0].id.encode(), b"").split(b"commitUser")[0]
            for commit in table.events(1)
        ]

    def without_parent(body: bytes) -> bytes:
        return body[body.index(b"transactions") :]

    one, two = (list(map(without_parent, facts(random_table(seed, 20)))) for _ in range(2))
    assert one == two
