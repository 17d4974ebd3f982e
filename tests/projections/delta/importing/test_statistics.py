"""Statistics of imported files: as text or as struct, of every type, they cut off no value."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen
from deltalake import DeltaTable, write_deltalake
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ledger import Table
from ledger.model import types as t
from ledger.model.file_change import FileChange
from projections.delta.values import bound_of
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import metadata
from tests.projections.importing.what_came import now

NTZ = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz", "columnMapping"],
        "writerFeatures": ["timestampNtz", "columnMapping"],
    }
}


@frozen
class Kind:
    """A Delta type, and the least and the greatest value of a file.

    Attributes:
        delta: The type in the schema.
        arrow: The type in a checkpoint.
        least: The least value, as Arrow has it.
        greatest: The greatest one.
        said: Both in the form of `stats` in JSON.
        literals: Both as literals of a filter.
        below: A literal below both.
        above: A literal above both.
    """

    delta: str
    arrow: pa.DataType
    least: Any
    greatest: Any
    said: tuple[Any, Any]
    literals: tuple[str, str]
    below: str
    above: str


def number(delta: str, arrow: pa.DataType, least: Any, greatest: Any) -> Kind:
    texts = str(least), str(greatest)
    return Kind(delta, arrow, least, greatest, (least, greatest), texts, "-2e38", "2e38")


def whole(delta: str, arrow: pa.DataType, bits: int) -> Kind:
    least, most = 1 - (1 << bits - 1), (1 << bits - 1) - 2
    below, above = str(least - 1), str(most + 1)
    return Kind(delta, arrow, least, most, (least, most), (str(least), str(most)), below, above)


def decimal(precision: int, scale: int, least: str, greatest: str) -> Kind:
    kind, arrow = f"decimal({precision},{scale})", pa.decimal128(precision, scale)
    said = Exact(least), Exact(greatest)
    most = 10**precision - 1
    ends = (
        min(abs(int(Fraction(each) * 10**scale * Fraction(9, 8))), most)
        for each in (least, greatest)
    )
    below, above = (f"{Decimal(each).scaleb(-scale, EXACT):f}" for each in ends)
    texts = least, greatest
    return Kind(kind, arrow, Decimal(least), Decimal(greatest), said, texts, f"-{below}", above)


EXACT = Context(prec=80)


@frozen
class Exact:
    """A number that JSON has with all of its digits."""

    text: str


def moment(delta: str, arrow: pa.DataType, least: datetime, greatest: datetime) -> Kind:
    end = "Z" if delta == "timestamp" else ""
    texts = [f"{each:%Y-%m-%dT%H:%M:%S.%f}".rjust(26, "0") for each in (least, greatest)]
    said = texts[0][:-3] + end, texts[1][:-3] + end
    first, last = (f"'{text}{end}'" for text in texts)
    if arrow.tz is not None:
        least, greatest = least.replace(tzinfo=UTC), greatest.replace(tzinfo=UTC)
    # Writers cut the microseconds of both.
    lower, upper = (
        each.replace(microsecond=each.microsecond // 1000 * 1000) for each in (least, greatest)
    )
    early, late = f"'-0009-01-01T00:00:00{end}'", f"'+10009-01-01T00:00:00{end}'"
    return Kind(delta, arrow, lower, upper, said, (first, last), early, late)


EARLY, LATE = (
    datetime.fromisoformat(each)
    for each in ("0001-01-01T00:00:00.000001", "9999-12-31T23:59:59.999999")
)
USUAL = tuple(
    datetime.fromisoformat(each)
    for each in ("2024-06-14T04:00:00.123456", "2024-06-14T04:00:00.123457")
)

KINDS: dict[str, Kind] = {
    "byte": whole("byte", pa.int8(), 8),
    "short": whole("short", pa.int16(), 16),
    "integer": whole("integer", pa.int32(), 32),
    "long": whole("long", pa.int64(), 64),
    "float": number("float", pa.float32(), -1.5, 0.5),
    "double": number("double", pa.float64(), -1.1, 1e30),
    "decimal of 9": decimal(9, 2, "-1234567.89", "1234567.88"),
    "decimal of 18": decimal(18, 3, "-123456789012345.678", "123456789012345.679"),
    "decimal of 22": decimal(22, 2, "-99999999999999999999.99", "99999999999999999999.99"),
    "decimal of 30": decimal(30, 2, "-12345678901234567890.12", "12345678901234567890.13"),
    "decimal of 38": decimal(38, 0, f"-{'9' * 38}", "9" * 38),
    "decimal with only a fraction": decimal(38, 38, f"-0.{'1' * 38}", f"0.{'123' * 12}45"),
    "date": Kind(
        "date",
        pa.date32(),
        date(1, 1, 1),
        date(9999, 12, 31),
        ("0001-01-01", "9999-12-31"),
        ("'0001-01-01'", "'9999-12-31'"),
        "'-0009-01-01'",
        "'+10009-01-01'",
    ),
    "timestamp": moment("timestamp", pa.timestamp("us", "UTC"), *USUAL),
    "timestamp of far years": moment("timestamp", pa.timestamp("us", "UTC"), EARLY, LATE),
    "timestamp in INT96": moment("timestamp", pa.timestamp("us"), EARLY, LATE),
    "timestamp in milliseconds": moment("timestamp", pa.timestamp("ms", "UTC"), *USUAL),
    "timestamp_ntz": moment("timestamp_ntz", pa.timestamp("us"), *USUAL),
    "timestamp_ntz of far years": moment("timestamp_ntz", pa.timestamp("us"), EARLY, LATE),
    "string": Kind("string", pa.string(), "a", "ü", ("a", "ü"), ("'a'", "'ü'"), "'A'", "'ÿ'"),
    "string that is cut": Kind(
        "string",
        pa.string(),
        "b" * 32,
        "\U0001f600" * 16 + "\U0010ffff",
        ("b" * 32, "\U0001f600" * 16 + "\U0010ffff"),
        (f"'{'b' * 40}'", f"'{chr(0x1F600) * 40}'"),
        "'a'",
        f"'{chr(0x1F601)}'",
    ),
}


def encoded(value: Any) -> str:
    """JSON in which decimals have all of their digits."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}: {encoded(each)}" for key, each in value.items())
        return f"{{{', '.join(members)}}}"
    return value.text if isinstance(value, Exact) else json.dumps(value)


@frozen
class Place:
    """Position of a column in its table.

    Attributes:
        fields: The fields of the schema around the column.
        path: The names in files that lead to it.
        configuration: The table's configuration.
        column: Its name in a filter; None where filters cannot name it.
    """

    fields: Any
    path: tuple[str, ...]
    configuration: dict[str, str]
    column: str | None


def plain(kind: str) -> Place:
    return Place([member("c", kind)], ("c",), {}, "c")


def nested(kind: str) -> Place:
    inner = {
        "type": "struct",
        "fields": [member("y", {"type": "struct", "fields": [member("c", kind)]})],
    }
    return Place([member("s", inner)], ("s", "y", "c"), {}, None)


def mapped(kind: str) -> Place:
    mode = {"delta.columnMapping.mode": "name"}
    return Place([member("c", kind, physical="p")], ("p",), mode, "c")


def mapped_and_nested(kind: str) -> Place:
    mode = {"delta.columnMapping.mode": "name"}
    inner = {"type": "struct", "fields": [member("c", kind, 2, physical="q")]}
    return Place([member("s", inner, physical="p")], ("p", "q"), mode, None)


def member(name: str, kind: Any, number: int = 1, physical: str | None = None) -> dict[str, Any]:
    said = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": said if physical else {}}


def within(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def struct_of(path: tuple[str, ...], kind: pa.DataType) -> pa.DataType:
    for name in reversed(path):
        kind = pa.struct([(name, kind)])
    return kind


def adds_of(kind: Kind, place: Place) -> tuple[dict[str, Any], pa.DataType]:
    """Return an `add` with its statistics as text and as struct, and the struct's type."""
    parts = {"minValues": kind.least, "maxValues": kind.greatest, "nullCount": 3}
    texts = {"minValues": kind.said[0], "maxValues": kind.said[1], "nullCount": 3}
    parsed = {key: within(place.path, each) for key, each in parts.items()}
    text = {key: within(place.path, each) for key, each in texts.items()}
    types = [
        (key, struct_of(place.path, pa.int64() if key == "nullCount" else kind.arrow))
        for key in parts
    ]
    added = {
        "path": "a",
        "partitionValues": [],
        "size": 9,
        "modificationTime": 5,
        "dataChange": False,
        "stats": encoded({"numRecords": 7, **text}),
        "stats_parsed": {"numRecords": 7, **parsed},
    }
    return added, pa.struct([("numRecords", pa.int64()), *types])


DIGITS = 40
"""Number of digits that the log may leave without a bound: no decimal has so many."""

TEXTS = pa.map_(pa.string(), pa.string())
FEATURES = pa.list_(pa.string())
PROTOCOL_TYPE = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", FEATURES),
        ("writerFeatures", FEATURES),
    ]
)
METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", TEXTS),
        ("createdTime", pa.int64()),
    ]
)


def checkpointed(
    folder: Path, place: Place, adds: list[dict[str, Any]], parsed: pa.DataType, **how: Any
) -> str:
    """Write a table whose log is a checkpoint of version 0."""
    action = metadata(*place.fields, configuration=place.configuration)["metaData"]
    action = {**action, "configuration": list(action["configuration"].items())}
    action["format"] = {"provider": "parquet", "options": []}
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", TEXTS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
            ("stats_parsed", parsed),
        ]
    )
    rows = [NTZ, {"metaData": action}, *({"add": each} for each in adds)]
    schema = pa.schema([("protocol", PROTOCOL_TYPE), ("metaData", METADATA_TYPE), ("add", kind)])
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    path = log / f"{0:020d}.checkpoint.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path, **how)
    return str(folder)


def table_of(source: str) -> Table:
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", source, format_name="delta")
    return lake.table("a.b")


def facts(file: FileChange) -> tuple[Any, ...]:
    return file.record_count, file.null_value_counts, file.lower_bounds, file.upper_bounds


@pytest.mark.parametrize("where", [plain, nested, mapped, mapped_and_nested])
@pytest.mark.parametrize("name", KINDS)
def test_statistics_as_a_struct_are_those_as_a_text(tmp_path: Path, name: str, where: Any) -> None:
    kind = KINDS[name]
    place = where(kind.delta)
    added, parsed = adds_of(kind, place)
    how = {"use_deprecated_int96_timestamps": "INT96" in name}
    found = []
    for form, lost in (("text", "stats_parsed"), ("struct", "stats")):
        one = {key: each for key, each in added.items() if key != lost}
        table = table_of(checkpointed(tmp_path / form, place, [one], parsed, **how))
        (file,) = table.at().files
        found.append(facts(file))
        if place.column is None:
            continue
        for literal in kind.literals:
            assert len(table.at().plan(f"{place.column} = {literal}").files) == 1
        for where_not in (f"< {kind.below}", f"> {kind.above}"):
            assert not table.at().plan(f"{place.column} {where_not}").files
    assert found[0] == found[1]
    assert all(found[0])


def test_each_file_has_the_statistics_that_its_own_entry_holds(tmp_path: Path) -> None:
    kind = KINDS["decimal of 30"]
    place = plain(kind.delta)
    added, parsed = adds_of(kind, place)
    only = {"stats": encoded({"numRecords": 5})}
    file = tmp_path / "t/neither"
    file.parent.mkdir()
    pq.write_table(pa.table({"c": pa.array([Decimal(1)] * 4, kind.arrow)}), file)
    adds = [
        {**added, "path": "both"},
        {**added, "path": "struct", "stats": None},
        {**added, "path": "empty text", "stats": ""},
        {**added, "path": "text", "stats_parsed": None},
        {**added, "path": "text without bounds", **only},
        {**added, "path": "neither", "stats": None, "stats_parsed": None},
    ]
    table = table_of(checkpointed(tmp_path / "t", place, adds, parsed))
    found = {each.path.rpartition("/")[2]: facts(each) for each in table.at().files}
    for each in ("struct", "empty text", "text"):
        assert found[each] == found["both"]
    assert [found[each][0] for each in ("text without bounds", "neither")] == [5, 4]
    paths = {each.file.path.rpartition("/")[2] for each in table.at().plan("c > 1e25").files}
    assert paths == {"text without bounds", "neither"}


def test_members_that_a_struct_lacks_are_unknown(tmp_path: Path) -> None:
    kind = KINDS["integer"]
    place = plain(kind.delta)
    added, _ = adds_of(kind, place)
    fewer = pa.struct([("numRecords", pa.int64()), ("nullCount", pa.struct([("c", pa.int64())]))])
    adds = [
        {**added, "path": "a", "stats": None, "stats_parsed": {"numRecords": 7}},
        {**added, "path": "b", "stats": None, "stats_parsed": {"numRecords": 7, "nullCount": {}}},
    ]
    table = table_of(checkpointed(tmp_path / "t", place, adds, fewer))
    assert {each.record_count for each in table.at().files} == {7}
    assert len(table.at().plan("c = 3").files) == 2


@pytest.mark.parametrize("is_checkpointed", [True, False])
@pytest.mark.parametrize("name", [each for each in KINDS if "decimal" in each])
def test_decimals_that_delta_rs_rounds_to_floats_are_within_the_bounds(
    tmp_path: Path, name: str, *, is_checkpointed: bool
) -> None:
    kind, source = KINDS[name], str(tmp_path / "t")
    for value in (kind.least, kind.greatest):
        write_deltalake(source, pa.table({"c": pa.array([value], kind.arrow)}), mode="append")
    if is_checkpointed:
        DeltaTable(source).create_checkpoint()
        for version in range(2):
            (tmp_path / f"t/_delta_log/{version:020d}.json").unlink()
    table = table_of(source)
    for literal in kind.literals:
        assert table.at().plan(f"c = {literal}").files
    assert not table.at().plan(f"c > {kind.above}").files
    assert not table.at().plan(f"c < {kind.below}").files


@given(st.integers(1, 38), st.data())
def test_a_decimal_bound_holds_what_the_log_rounded_and_is_exact_where_it_can_be(
    precision: int, data: st.DataObject
) -> None:
    scale = data.draw(st.integers(0, precision))
    unscaled = data.draw(st.integers(1 - 10**precision, 10**precision - 1))
    kind = t.DecimalType(precision, scale)
    value = Decimal(f"{unscaled}E-{scale}")
    rounded = float(unscaled) / float(10**scale)
    for said in (value, Decimal(repr(rounded)), Decimal(rounded)):
        lower, upper = (bound_of(said, kind, upper=upper) for upper in (False, True))
        if lower is None and len(said.as_tuple().digits) > DIGITS:
            continue
        assert isinstance(lower, int)
        assert isinstance(upper, int)
        assert lower <= unscaled <= upper
        if abs(unscaled) < 1 << 50:
            assert lower == upper


def test_a_struct_with_members_that_have_no_statistics_is_read(tmp_path: Path) -> None:
    place = Place([member("c", "binary"), member("d", "integer")], ("c",), {}, None)
    odd = pa.struct(
        [
            ("c", pa.binary()),
            ("d", pa.int32()),
            ("e", pa.list_(pa.timestamp("ns"))),
            ("f", pa.time64("ns")),
            ("g", pa.date64()),
        ]
    )
    value = {"c": b"\xff", "d": 4, "e": [1], "f": 1, "g": date(1970, 1, 9)}
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", odd), ("maxValues", odd)])
    added = {
        "path": "a",
        "partitionValues": [],
        "size": 9,
        "stats_parsed": {"numRecords": 7, "minValues": value, "maxValues": value},
    }
    table = table_of(checkpointed(tmp_path / "t", place, [added], parsed))
    assert len(table.at().plan("d = 4").files) == 1
    assert not table.at().plan("d = 5").files


@example(float(2**128 - 2**104), 8, "text")
@given(st.floats(width=32, allow_nan=False), st.integers(1, 9), st.sampled_from(["text", "number"]))
def test_a_bound_of_a_double_holds_the_float_that_an_older_file_has(
    value: float, digits: int, form: str
) -> None:
    text = f"{value:.{digits}g}"
    try:
        assume(struct.unpack("<f", struct.pack("<f", float(text))) == (value,))
    except OverflowError:
        assume(condition=False)
    said = float(text) if form == "number" else Decimal(text)
    lower, upper = (bound_of(said, t.DoubleType(), upper=upper) for upper in (False, True))
    assert isinstance(lower, float)
    assert isinstance(upper, float)
    assert lower <= value <= upper
    assert lower <= float(text) <= upper


@given(st.floats(allow_nan=False))
def test_a_bound_of_a_double_that_no_float_has_is_exact(value: float) -> None:
    lower, upper = (
        bound_of(Decimal(repr(value)), t.DoubleType(), upper=upper) for upper in (False, True)
    )
    assert isinstance(lower, float)
    assert isinstance(upper, float)
    assert lower <= value <= upper
    if len(Decimal(repr(value)).normalize().as_tuple().digits) > 9:
        assert lower == value == upper
