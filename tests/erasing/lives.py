"""Ledgers whose people can be forgotten: many of them at work, each a text that nobody guesses."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import ledger
from ledger import Ledger, LedgerError, SetOption, Table
from ledger.cli.commands.verify import differences
from ledger.history.verifying import Finding, Subject, Verification
from ledger.history.verifying.surroundings import CatalogedTables, lost_sidecar_values
from ledger.log import CommitOptions
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of
from tests.histories import random_changes
from tests.lakes import data_file, lake_on

LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789äß"\\/ é'


def secret(rng: random.Random) -> str:
    """Return a text of 16 characters and more, which JSON may have to escape."""
    return "x" + "".join(rng.choices(LETTERS, k=rng.randint(16, 30))) + "x"


def spellings(text: str) -> Iterator[bytes]:
    """Yield the encodings of a text in a file."""
    yield text.encode()
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield text.encode().hex().encode()
    # Properties are JSON in JSON.
    yield json.dumps(json.dumps(text, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1].encode()


def holding(store: Store, text: str) -> list[str]:
    """Return the keys below a root whose bytes hold a text."""
    wanted = set(spellings(text))
    return [
        key
        for key in store.walk("")
        if (body := store.read(key)) is not None and any(each in body for each in wanted)
    ]


class Life:
    """A ledger of several tables, changed by several people."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self.rng = rng
        self.people = [secret(rng) for _ in range(4)]
        self.lake = lake_on(store)
        self.lake.init(erasable=True)
        self.steps = 0

    def who(self) -> CommitOptions:
        """Return author and message of the next commit; some name other people."""
        rng = self.rng
        options: CommitOptions = {"author": rng.choice(self.people)}
        if rng.random() < 0.6:
            options["message"] = f"{secret(rng)}, asked by {rng.choice(self.people)}."
        if rng.random() < 0.3:
            options["properties"] = {"for": rng.choice(self.people), secret(rng): "1"}
        return options

    def begin(self) -> None:
        """Create a database and two tables."""
        self.lake.create_database("shop", **self.who())
        columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
        for name in ("orders", "items"):
            schema = ledger.Schema.of(columns, partition_keys=["day"])
            self.lake.create_table(f"shop.{name}", schema, **self.who())

    def step(self) -> None:
        """Do something, through a warm handle or one that is just opened."""
        self.steps += 1
        rng, number = self.rng, self.steps
        if rng.random() < 0.2:
            self.lake = lake_on(self.store)
        names = self.lake.tables()
        name = rng.choice(names)
        table = self.lake.table(name)
        with suppress(LedgerError, IndexError):
            self._change(table, rng.randrange(9), f"{number}.parquet")

    def _change(self, table: Table, kind: int, file: str) -> None:
        rng, who = self.rng, self.who()
        if kind <= 1:
            table.append([data_file(file)], **who)
        elif kind == 2:
            table.create_tag(f"t{self.steps}", **who)
        elif kind == 3:
            table.rollback(snapshot=rng.randint(1, max(1, table.state.last_snapshot_id)), **who)
        elif kind == 4:
            table.project(rng.choice(["paimon", "iceberg"]))
        elif kind == 5:
            self.lake.rename_table(table.identifier, f"shop.n{self.steps}", **who)
        elif kind == 6 and self.steps % 5 == 0:
            self.lake.drop_table(table.identifier, **who)
            self.lake.create_table(f"shop.m{self.steps}", {"id": "INT"}, **self.who())
        elif kind == 7:
            who["expect_version"] = 0
            table.alter([SetOption("k", "1")], **who)
        else:
            table.alter(random_changes(rng, table.state.schema, length=1), **who)


def read_all(lake: Ledger) -> list[str]:
    """Let every reader read everything; return all that they say of people."""
    said: list[str] = []
    for entry in lake.entries():
        transaction = entry.transaction
        said += [transaction.author, transaction.message, *transaction.properties]
        said += transaction.properties.values()
    for commit in lake.events():
        said += [each.author for each in commit.transactions]
    said.append(lake.report())
    said += [str(row) for row in lake.history()]
    for name in lake.tables():
        table = lake.table(name)
        list(table.events())
        said += [str(each) for each in table.blame()]
        said.append(table.report())
        said.append(table.at(version=table.state.version // 2).state.updated_by)
    return said


def damages(lake: Ledger, store: Store) -> list[Finding]:
    """Return what a verification of all logs and personal values finds that fails."""
    found: list[Finding] = []
    cold = lake_on(store)
    subjects: list[Subject[Any, Any]] = [Subject("catalog", handle_of(cold).log, has_files=False)]
    cataloged_tables = CatalogedTables.of(
        read.commit for read in handle_of(cold).log.commits(0, lake.state.version)
    )
    for cataloged in cataloged_tables:
        table = Table(TableHandle(cataloged.identifier, cataloged.path, handle_of(cold).setting))
        subjects.append(Subject(cataloged.name, handle_of(table).log, has_files=True))
    for subject in subjects:
        verification: Verification[Any, Any] = Verification(subject)
        found += verification.run()
        found += lost_sidecar_values(subject, verification.version)
    return [each for each in found if each.fails]


def findings(lake: Ledger, store: Store) -> list[Finding]:
    """Return what a verification of everything finds that fails."""
    found, cold = damages(lake, store), lake_on(store)
    for name in cold.tables():
        for _, some in differences(handle_of(cold.table(name))):
            found += some
    return [each for each in found if each.fails]
