"""Metadata that no writer of a format produces is rejected, or the ledger handles it.

Each number of a table's metadata is what no writer makes it. Either nothing at all is written, or
the table is read anew, found sound by `verify`, and projected.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import ledger
from ledger import (
    AddColumn,
    FileChange,
    InvalidInputError,
    LedgerError,
    SetOption,
    schema_from_json,
)
from ledger.cli import main
from ledger.state.declared_formats import FORMATS_OPTION
from tests.thorough import some

HOSTILE = (-1, 0, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400)
PARTS = 40
"""Into so many parts the cases of a format are dealt; every run looks at one."""

Place = tuple[str | int, ...]
TEXT = "(in the text)"
"""A step into the JSON that is a text."""

COLUMNS = [
    {"id": 0, "name": "id", "type": "INT"},
    {"id": 1, "name": "p", "type": "STRING"},
    {
        "id": 2,
        "name": "r",
        "type": {
            "type": "ROW",
            "fields": [
                {"id": 3, "name": "x", "type": "DECIMAL(10, 2)"},
                {"id": 4, "name": "y", "type": {"type": "ARRAY", "element": "INT"}},
            ],
        },
    },
    {"id": 5, "name": "ts", "type": "TIMESTAMP(6)"},
]
FILES = {
    "paimon": ("schema/schema-*", "snapshot/snapshot-*", "tag/tag-*"),
    "iceberg": ("metadata/*.metadata.json",),
    "delta": ("_delta_log/*.json",),
}


@frozen
class Source:
    """A table of others, in a folder.

    Attributes:
        format: Which.
        folder: Where.
    """

    format: str
    folder: Path

    @property
    def files(self) -> list[Path]:
        """Its metadata; of Iceberg the newest, which has all."""
        found = sorted(each for glob in FILES[self.format] for each in self.folder.glob(glob))
        return found[-1:] if self.format == "iceberg" else found

    def lines(self) -> Iterator[tuple[Path, int]]:
        """Each JSON object that it is made of."""
        for each in self.files:
            for number, _ in enumerate(each.read_text().splitlines()):
                yield each, number

    @contextmanager
    def saying(self, file: Path, number: int, line: str) -> Iterator[None]:
        """Say something else in a line for a while; what a promotion writes goes again, too."""
        there, said = {*self.folder.rglob("*")}, file.read_text()
        lines = said.splitlines()
        lines[number] = line
        file.write_text("\n".join(lines) + "\n")
        try:
            yield
        finally:
            file.write_text(said)
            for each in {*self.folder.rglob("*")} - there:
                each.unlink()


def cleaned(said: Any) -> Any:
    """Return metadata without what tells that the ledger wrote it."""
    if isinstance(said, list):
        return [cleaned(each) for each in said]
    if not isinstance(said, dict):
        return said
    kept = {key: cleaned(each) for key, each in said.items() if not key.startswith("ledger.")}
    kept.pop("lakeledger.version", None)
    return kept


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    """A table with some life in each format, as others might have written it."""
    root = tmp_path_factory.mktemp("theirs")
    lake = ledger.open(str(root), author="ada")
    lake.create_database("d")
    options = {FORMATS_OPTION: ",".join(FILES)}
    schema = schema_from_json({"fields": COLUMNS, "options": options, "partitionKeys": ["p"]})
    table = lake.create_table("d.t", schema)
    table.append([new_file("a"), new_file("b")])
    table.alter([AddColumn(("n",), "BIGINT")])
    table.create_tag("v1")
    table.append([new_file("c")])
    table.alter([SetOption("k", "v")])
    for each in FILES:
        table.project(each)
    folder = root / "d.db" / "t"
    shutil.rmtree(folder / "_ledger")
    # An import reads the earlier files, too; these tests change the newest.
    for earlier in sorted((folder / "metadata").glob("0*.metadata.json"))[:-1]:
        earlier.unlink()
    found = {each: Source(each, folder) for each in FILES}
    for source in found.values():
        for file in source.files:
            said = file.read_text()
            lines = said.splitlines() if source.format == "delta" else [said]
            file.write_text("".join(f"{json.dumps(cleaned(json.loads(each)))}\n" for each in lines))
    return found


def new_file(name: str) -> FileChange:
    return FileChange(
        path=f"{name}.parquet",
        partition=("x",),
        record_count=1,
        file_size_in_bytes=9,
        creation_time=1_700_000_000_000,
        value_counts={0: 1},
        null_value_counts={0: 0},
        lower_bounds={0: "01000000"},
        upper_bounds={0: "01000000"},
        field_ids=True,
    )


def numbers(said: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the places of all numbers, those in texts as well, with how JSON says one there."""
    match said:
        case dict():
            for key, each in said.items():
                yield from numbers(each, (*place, key))
        case list():
            for at, each in enumerate(said):
                yield from numbers(each, (*place, at))
        case str() if said.startswith("{"):
            yield from numbers(json.loads(said), (*place, TEXT))
        case str() if said.lstrip("-").isdigit():
            yield place, '"%d"'
        case int() if not isinstance(said, bool):
            yield place, "%d"


def put(said: Any, place: Place, text: str) -> str:
    """Return JSON with other JSON in a place."""
    if not place:
        return text
    step, rest = place[0], place[1:]
    if step == TEXT:
        return json.dumps(put(json.loads(said), rest, text))
    if isinstance(said, list):
        parts = (
            put(each, rest, text) if at == step else json.dumps(each)
            for at, each in enumerate(said)
        )
        return f"[{','.join(parts)}]"
    pairs = (
        f"{json.dumps(key)}:{put(each, rest, text) if key == step else json.dumps(each)}"
        for key, each in said.items()
    )
    return f"{{{','.join(pairs)}}}"


def is_lived_with(source: Source, root: Path) -> bool:
    """Import a table; return whether it came in, and check what came of it."""
    lake = ledger.open(str(root), author="bob")
    try:
        lake.import_table("d.t", str(source.folder), format_name=source.format)
    except LedgerError:
        assert not [*root.rglob("*.json")], "refused, and written all the same"
        return False
    lake.import_table("d.t", str(source.folder), format_name=source.format)
    check(root, [source.format])
    table = lake.table("d.t")
    with suppress(LedgerError):
        assert table.at().files is not None
    try:
        lake.promote("d.t")
    except LedgerError:
        return True
    check(root, [source.format])
    return True


def check(root: Path, formats: list[str]) -> None:
    for trust in ("log", "all"):
        table = ledger.open(str(root), author="eve", trust=trust).table("d.t")
        assert table.at().version == table.state.version
    for each in formats:
        table.project(each)
    assert main(["verify", "--ledger", str(root)]) == 0


def cases(source: Source) -> Iterator[tuple[Path, int, Place, str]]:
    """Yield every number of a table with each hostile one that could stand there."""
    for file, number in source.lines():
        for place, form in numbers(json.loads(file.read_text().splitlines()[number])):
            for each in HOSTILE:
                yield file, number, place, form % each


@pytest.mark.parametrize("part", some(range(PARTS), 1))
@pytest.mark.parametrize("format_name", FILES)
def test_every_number_is_rejected_or_lived_with(
    sources: dict[str, Source],
    tmp_path: Path,
    format_name: str,
    part: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = sources[format_name]
    dealt = [*cases(source)]
    random.Random(2).shuffle(dealt)
    for at, (file, number, place, value) in enumerate(dealt[part::PARTS]):
        line = json.loads(file.read_text().splitlines()[number])
        case = f"{file.name}, line {number}, {place} is {value:.24}"
        with source.saying(file, number, put(line, place, value)):
            try:
                is_lived_with(source, tmp_path / str(at))
            except Exception as error:
                raise AssertionError(f"{case}: {capsys.readouterr()}") from error
        shutil.rmtree(tmp_path / str(at), ignore_errors=True)


DEEP = "[" * 200_000 + "]" * 200_000
REFUSED: dict[str, tuple[str, str, Place, str, str]] = {
    "a format that is no text": (
        *("delta", "*0.json", ("metaData", "format", "provider"), "1e400"),
        r"0\.json has invalid metadata",
    ),
    "an option of the format that is a number": (
        *("delta", "*0.json", ("metaData", "format", "options"), '{"a":1}'),
        "invalid metadata: Expected `str`, got `int`",
    ),
    "a protocol that says nothing": (
        "delta",
        "*0.json",
        ("protocol",),
        "{}",
        "invalid protocol",
    ),
    "no protocol": ("delta", "*0.json", ("protocol",), "", "begins a table without protocol"),
    "who and why, endlessly nested": (
        *("delta", "*1.json", ("commitInfo", "operation"), DEEP),
        r"1\.json is not a file of a Delta log",
    ),
    "a time of five thousand digits": (
        *("delta", "*1.json", ("commitInfo", "timestamp"), "9" * 5000),
        r"1\.json is not a file of a Delta log",
    ),
    "statistics, endlessly nested": (
        *("delta", "*1.json", ("add", "stats", TEXT, "minValues"), DEEP),
        "has invalid statistics",
    ),
    "a count of rows as text": (
        *("delta", "*1.json", ("add", "stats", TEXT, "numRecords"), '"9"'),
        "has invalid statistics",
    ),
    "a number that no column has": (
        *("delta", "*1.json", ("add", "stats", TEXT, "numRecords"), "1e999999"),
        "has invalid statistics",
    ),
    "a file outside": (
        *("delta", "*1.json", ("add", "path"), '"../../x.parquet"'),
        r"1\.json: the file path '.*\.\./x.parquet' is outside of its folder, which a log",
    ),
    "a manifest list without a name": (
        *("paimon", "snapshot-1", ("baseManifestList",), '""'),
        "snapshot/snapshot-1: its base manifest list '' is not a file name",
    ),
    "a manifest list elsewhere": (
        *("paimon", "snapshot-1", ("deltaManifestList",), '"../../x"'),
        r"its delta manifest list '\.\./\.\./x' is not a file name",
    ),
    "a manifest list of a long name": (
        *("paimon", "snapshot-1", ("deltaManifestList",), f'"{"x" * 300}"'),
        "is not a file name",
    ),
    "a manifest list elsewhere, by a tag": (
        *("paimon", "tag-v1", ("baseManifestList",), '"a/b"'),
        "tag/tag-v1: its base manifest list 'a/b' is not a file name",
    ),
    "a spec without fields": (
        *("iceberg", "*.json", ("partition-specs", 0, "fields"), "[]"),
        "partition spec 0 of the metadata has 0 fields, and the manifest not",
    ),
}
"""Rejected metadata: format, file, place, value (empty: no line), and the error message."""


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_projection_could_say_is_rejected_by_name_before_anything_is_written(
    sources: dict[str, Source], tmp_path: Path, what: str
) -> None:
    format_name, name, place, text, said = REFUSED[what]
    source = sources[format_name]
    file = next(each for each in source.files if each.match(name))
    lines = [json.loads(each) for each in file.read_text().splitlines()]
    number = next(at for at, each in enumerate(lines) if place[0] in each)
    lake = ledger.open(str(tmp_path), author="bob")
    line = text and put(lines[number], place, text)
    with (
        source.saying(file, number, line),
        pytest.raises(LedgerError, match=said),
    ):
        lake.import_table("d.t", str(source.folder), format_name=format_name)
    assert not [*tmp_path.rglob("*.json")]


def test_manifests_of_a_spec_that_there_is_not_are_rejected(
    sources: dict[str, Source], tmp_path: Path
) -> None:
    source = sources["iceberg"]
    (file,) = source.files
    said = json.loads(file.read_text())
    said["partition-specs"][0]["spec-id"] = said["default-spec-id"] = 5
    lake = ledger.open(str(tmp_path), author="bob")
    with (
        source.saying(file, 0, json.dumps(said)),
        pytest.raises(InvalidInputError, match="the metadata has no partition spec 0"),
    ):
        lake.import_table("d.t", str(source.folder), format_name="iceberg")
    assert not [*tmp_path.rglob("*.json")]


@pytest.mark.parametrize("bound", ["1e99999999", "1e-99999999", '"1e99999999"'])
@pytest.mark.parametrize("column", [("id",), ("r", "x")])
def test_a_bound_of_endless_digits_is_no_bound_and_is_read_quickly(
    sources: dict[str, Source], tmp_path: Path, column: Place, bound: str
) -> None:
    source = sources["delta"]
    file, number, said = next(
        (file, number, said)
        for file, number in source.lines()
        if "add" in (said := json.loads(file.read_text().splitlines()[number]))
    )
    stats = json.loads(said["add"]["stats"])
    least = stats.setdefault("minValues", {})
    for each in column[:-1]:
        least = least.setdefault(each, {})
    least[column[-1]] = 0
    said["add"]["stats"] = json.dumps(stats)
    place = ("add", "stats", TEXT, "minValues", *column)
    with source.saying(file, number, put(said, place, bound)):
        assert is_lived_with(source, tmp_path)


def test_partitions_that_are_none_of_their_spec_stay_their_owner_s(
    sources: dict[str, Source], tmp_path: Path
) -> None:
    source = sources["iceberg"]
    (file,) = source.files
    place = ("partition-specs", 0, "fields", 0, "source-id")
    lake = ledger.open(str(tmp_path), author="bob")
    with source.saying(file, 0, put(json.loads(file.read_text()), place, "0")):
        lake.import_table("d.t", str(source.folder), format_name="iceberg")
        with pytest.raises(LedgerError, match=r"the partition of .*\.parquet is invalid"):
            lake.promote("d.t")
    check(tmp_path, ["iceberg"])
