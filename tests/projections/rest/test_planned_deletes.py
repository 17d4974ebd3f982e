"""A plan gives each data file the deletes that apply to it, by the rules of Iceberg's scans."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger import FileChange, Schema, SetOption, Table
from projections.iceberg.table_json import read_metadata
from projections.rest.iceberg.planning import plan_table_scan
from tests.files.test_later_facts import by_position, by_value, data, table_on, vector
from tests.lakes import lake_on, memory
from tests.projections.iceberg.projecting import Left

V2 = {"format-version": "2"}
"""Version 3 takes no new deletes by position but deletion vectors."""

Tasks = dict[str, list[str]]


@frozen
class Planned:
    """A plan of a table's newest snapshot."""

    answer: dict[str, Any]
    location: str

    @classmethod
    def of(cls, table: Table, request: dict[str, Any] | None = None) -> Planned:
        left = Left.wanted(table)
        metadata = read_metadata(json.dumps(left.metadata(table.state.version, table)))
        body = plan_table_scan(json.dumps(request or {}).encode(), metadata, left.under)
        return cls(json.loads(body), table.location)

    def _name(self, file: dict[str, Any]) -> str:
        path = str(file["file-path"]).removeprefix(f"{self.location}/")
        return path if "content-offset" not in file else f"{path}#{file['content-offset']}"

    @property
    def tasks(self) -> Tasks:
        """The names of the deletes of each data file."""
        deletes = self.answer.get("delete-files", [])
        return {
            self._name(each["data-file"]): sorted(
                self._name(deletes[place]) for place in each.get("delete-file-references", [])
            )
            for each in self.answer["file-scan-tasks"]
        }

    @property
    def deletes(self) -> dict[str, dict[str, Any]]:
        """The delete files, by name."""
        return {self._name(each): each for each in self.answer.get("delete-files", [])}


def positions(path: str, **said: Any) -> FileChange:
    """Deletes by position of any files of a partition."""
    return data(path, content="position-deletes", **said)


def partitioned_table() -> Table:
    """A table by `day`, whose second spec has no fields and whose third one is by `name`."""
    lake = lake_on(memory())
    lake.create_database("shop")
    columns = {"id": "INT", "day": "DATE", "name": "STRING"}
    options = V2 | {"ledger.formats": "iceberg"}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    table = lake.create_table("shop.orders", schema)
    table.update_spec().remove_field("day").commit()
    table.update_spec().add_field("name").commit()
    return table


MONDAY, TUESDAY = ("2024-01-01",), ("2024-01-02",)


def test_deletes_apply_to_files_that_are_not_newer() -> None:
    table = table_on(memory(), V2)
    table.append([data("a"), by_value("e1", 0), positions("p1")])
    table.append([data("b"), by_value("e2", 0), positions("p2")])
    table.append([data("c")])
    assert Planned.of(table).tasks == {
        # A delete by value does not apply to files of its own snapshot, one by position does.
        "a": ["e2", "p1", "p2"],
        "b": ["p2"],
        "c": [],
    }


def test_deletes_by_position_of_one_file_apply_to_no_other() -> None:
    table = table_on(memory(), V2)
    table.append([data("a"), data("b")])
    table.append([by_position("p", of="b")])
    assert Planned.of(table).tasks == {"a": [], "b": ["p"]}


def test_a_deletion_vector_replaces_deletes_by_position_but_not_by_value() -> None:
    table = table_on(memory(), V2)
    table.append([data("a"), data("b")])
    table.append([by_position("pa", of="a"), by_position("pb", of="b"), positions("p")])
    table.alter([SetOption("format-version", "3")])
    table.append([by_value("e", 0), vector("a", 4)])
    table.append([vector("b", 60)])
    planned = Planned.of(table)
    assert planned.tasks == {"a": ["e", "v.puffin#4"], "b": ["e", "v.puffin#60"]}
    assert planned.deletes["v.puffin#4"] == {
        "content": "position-deletes",
        "file-path": f"{table.location}/v.puffin",
        "file-format": "puffin",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": 1000,
        "record-count": 3,
        "sort-order-id": 0,
        "referenced-data-file": f"{table.location}/a",
        "content-offset": 4,
        "content-size-in-bytes": 40,
    }
    assert planned.deletes["e"]["equality-ids"] == [0]
    assert planned.deletes["e"]["content"] == "equality-deletes"


def test_deletes_apply_to_files_of_their_partition_and_spec() -> None:
    table = partitioned_table()
    table.append(
        [
            data("monday", spec_id=0, partition=MONDAY),
            data("tuesday", spec_id=0, partition=TUESDAY),
            data("null", spec_id=0, partition=(None,)),
            data("bare", spec_id=1),
            data("named", spec_id=2, partition=("2024-01-01",)),
        ]
    )
    table.append(
        [
            by_value("e-monday", 0, spec_id=0, partition=MONDAY),
            by_value("e-everywhere", 0, spec_id=1),
            positions("p-monday", spec_id=0, partition=MONDAY),
            positions("p-null", spec_id=0, partition=(None,)),
            positions("p-bare", spec_id=1),
        ]
    )
    assert Planned.of(table).tasks == {
        "monday": ["e-everywhere", "e-monday", "p-monday"],
        "tuesday": ["e-everywhere"],
        "null": ["e-everywhere", "p-null"],
        # Only deletes by value apply beyond their partition, where their spec has no fields.
        "bare": ["e-everywhere", "p-bare"],
        "named": ["e-everywhere"],
    }


def test_only_deletes_of_planned_files_are_listed_each_once() -> None:
    table = partitioned_table()
    files = [data(f"d{each}", spec_id=0, partition=MONDAY) for each in range(3)]
    table.append([*files, data("t", spec_id=0, partition=TUESDAY)])
    table.append(
        [
            positions("p-monday", spec_id=0, partition=MONDAY),
            positions("p-tuesday", spec_id=0, partition=TUESDAY),
        ]
    )
    row_filter = {"type": "eq", "term": "day", "value": "2024-01-01"}
    planned = Planned.of(table, {"filter": row_filter})
    assert planned.tasks == {each.path: ["p-monday"] for each in files}
    assert len(planned.answer["delete-files"]) == 1
    assert "delete-files" not in Planned.of(table, {"filter": False}).answer


def test_rows_have_the_ids_that_the_snapshot_gave_them() -> None:
    table = table_on(memory())
    table.append([data("a")])
    table.append([data("b", first_row_id=100), data("c")])
    found = [each["data-file"] for each in Planned.of(table).answer["file-scan-tasks"]]
    assert sorted(each["first-row-id"] for each in found) == [0, 100, 110]


def test_an_incremental_scan_applies_no_deletes() -> None:
    table = table_on(memory())
    table.append([data("a")])
    table.append([data("b")])
    table.append([by_value("e", 0)])
    request = {"start-snapshot-id": 1, "end-snapshot-id": 3}
    assert Planned.of(table, request).tasks == {"b": []}


def applies(delete: FileChange, file: FileChange, *, newer: bool, as_new: bool) -> bool:
    """Return whether the specification lets a delete apply, but for deletion vectors."""
    is_same = (delete.spec_id, delete.partition) == (file.spec_id, file.partition)
    if delete.content == "equality-deletes":
        return newer and (is_same or delete.spec_id == 1)
    if isinstance(delete.referenced_data_file, str):
        return (newer or as_new) and delete.referenced_data_file == file.path
    return (newer or as_new) and is_same


PLACES = [(0, MONDAY), (0, TUESDAY), (0, (None,)), (1, ()), (2, ("a",)), (2, (None,))]


Kind = Literal["data", "by value", "by position", "of one file"]
Drawn = tuple[Kind, tuple[int, tuple[str | None, ...]]]


def drawn_files(name: str, drawn: Drawn, there: list[FileChange], version: int) -> list[FileChange]:
    """Return a drawn file; none where there is no file that it could apply to.

    Args:
        name: Its name.
        drawn: Its kind, spec and partition.
        there: The files of the table.
        version: The table's format version.
    """
    kind, (spec_id, partition) = drawn
    of = next((each for each in reversed(there) if each.content == "data"), None)
    has_vector = of and any(each.is_vector and each.path == f"v-{of.path}#4" for each in there)
    match kind:
        case "data":
            return [data(f"d{name}", spec_id=spec_id, partition=partition)]
        case "by value":
            return [by_value(f"e{name}", 0, spec_id=spec_id, partition=partition)]
        case "by position" if version < 3:
            return [positions(f"p{name}", spec_id=spec_id, partition=partition)]
        case "of one file" | "by position" if of is not None and not has_vector:
            place: dict[str, Any] = {"spec_id": of.spec_id, "partition": of.partition}
            if version < 3:
                return [replace(by_position(f"o{name}", of.path), **place)]
            return [vector(of.path, 4, f"v-{of.path}", **place)]
        case _:
            return []


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(get_args(Kind)), st.sampled_from(PLACES)))),
    st.integers(0, 4),
)
def test_each_file_gets_the_deletes_of_the_specification(
    history: list[list[Drawn]], upgraded: int
) -> None:
    table = partitioned_table()
    files: list[tuple[int, FileChange]] = []
    for number, commit in enumerate(history):
        if number == upgraded:
            table.alter([SetOption("format-version", "3")])
        there = [each for _, each in files]
        for place, drawn in enumerate(commit):
            there += drawn_files(f"{number}-{place}", drawn, there, 2 + (number >= upgraded))
        made = there[len(files) :]
        if made:
            table.append(made)
            files += ((number, each) for each in made)
    assert not files or Planned.of(table).tasks == {
        file.path: applied(file, added, files) for added, file in files if file.content == "data"
    }


def applied(file: FileChange, added: int, files: list[tuple[int, FileChange]]) -> list[str]:
    """Return the names of the deletes that apply to a data file."""
    found = [
        each
        for at, each in files
        if each.content != "data" and applies(each, file, newer=at > added, as_new=at == added)
    ]
    if any(each.is_vector for each in found):
        found = [each for each in found if each.is_vector or each.content == "equality-deletes"]
    return sorted(each.path for each in found)
