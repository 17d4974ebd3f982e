"""Changes to the files of a source: JSON by its nodes, Avro by its records, all else by its bytes.

A mutation keeps most of a file valid, so that readers get behind their first check.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from ledger.log import digest
from tests.fuzzing.cases import LOCATION, Case, seed_files

_NUMBERS: Final = (
    *(0, 1, -1, 2, 7, 127, 128, 255, 999, 1000, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53),
    *(2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**18, 10**30, 10**400),
    *(0.5, -0.0, 1e300, 1e-300, float("nan"), float("inf"), float("-inf")),
)
_TEXTS: Final = (
    *(
        "",
        " ",
        "a",
        "0",
        "-1",
        "1e9",
        "null",
        "true",
        "{}",
        "[]",
        '"',
        "\\",
        "\0",
        "\n",
        "\r",
        "\t",
    ),
    *("..", ".", "/", "//", "../../etc/hostname", "/etc/hostname", "a/../b", "a//b", "~", "%2e%2e"),
    *("file:///etc/hostname", "http://localhost:1/a", "s3://b/k", "memory://m", "x::file:///etc"),
    *("main", "v1", "a.b", "`a`", "a=b", "$x", "\u202e", "\u2066x\u2069", "\x1b[2J", "\u0000"),
    *(
        "\ud800",
        "\ufeff",
        "\u0130",
        "ß",
        "\u0301",
        "🦆",
        "x" * 300,
        "é" * 200,
        "[" * 2000,
        "a" * 70000,
    ),
    *("int", "long", "string", "decimal(9,2)", "decimal(99,-1)", "decimal(9, 2", "fixed[0]"),
    *(
        "fixed[99999999999]",
        "struct",
        "list",
        "map",
        "timestamp_ns",
        "variant",
        "unknown",
        "binary",
    ),
    *("INT NOT NULL", "DECIMAL(38, 38)", "DECIMAL(39, 40)", "VARCHAR(0)", "CHAR(99999999999)"),
    *("ROW<a INT>", "ARRAY<" * 300, "TIMESTAMP(99)", "MAP<INT, INT>", "MULTISET<INT>", "BLOB"),
    *("bucket[0]", "bucket[4]", "truncate[-1]", "truncate[99999999999999]", "void", "identity"),
    *("append", "overwrite", "replace", "delete", "2020-01-01", "9999-12-31T23:59:59Z", "P1D"),
    *("00000000-0000-0000-0000-000000000000", "null\x00", "asc", "desc", "nulls-first", LOCATION),
)
_VALUES: Final[tuple[Any, ...]] = (None, True, False, [], {}, [None], {"": None}, [[]], [{}])
_DEPTHS: Final = (3, 90, 1500, 60_000)

Changed = Callable[[bytes, random.Random], bytes]


def mutated(case: Case, rng: random.Random) -> Case:
    """Return a case with some more changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        case = _step(case, rng)
    return case


def _step(case: Case, rng: random.Random) -> Case:
    files = case.files
    if not files:
        return Case(case.seed, {})
    path = rng.choice(_weighted(files))
    kind = rng.random()
    if kind < 0.03:
        return case.with_file(path, None)
    if kind < 0.06:
        return case.with_file(path, files[rng.choice([*files])])
    if kind < 0.09:
        return case.with_file(_other_path(path, rng), files[path])
    if kind < 0.10:
        return case.with_file(path, seed_files(case.seed).get(path))
    return case.with_file(path, _mutated_file(case, path, files[path], rng))


def _weighted(files: dict[str, bytes]) -> list[str]:
    """Return the paths, those of text more often."""
    return [path for path, body in files.items() for _ in range(3 if body[:1] == b"{" else 1)]


def _other_path(path: str, rng: random.Random) -> str:
    folder, slash, name = path.rpartition("/")
    digits = [at for at, each in enumerate(name) if each.isdigit()]
    if digits and rng.random() < 0.7:
        at = rng.choice(digits)
        name = name[:at] + rng.choice("0123456789") + name[at + 1 :]
    elif rng.random() < 0.5:
        name = name.replace(".json", ".gz.json").replace(".metadata.gz.json", ".gz.metadata.json")
    else:
        name += rng.choice(("0", ".gz", ".tmp", "٣", "²", "9" * 30, "-\u202e", " "))
    return f"{folder}{slash}{name}"


def _mutated_file(  # noqa: PLR0911 - a format each
    case: Case, path: str, body: bytes, rng: random.Random
) -> bytes:
    if rng.random() < 0.12:
        return _bytes(body, rng)
    with suppress(Exception):
        # A file that was broken before is none that can be taken apart.
        if case.target == "export":
            return _export(body, rng)
        if body.startswith(b"Obj\x01"):
            return _avro(body, rng)
        if body.startswith(b"PAR1"):
            return _parquet(body, rng)
        if path.endswith((".gz.metadata.json", ".gz")):
            return gzip.compress(_lines(body, rng), mtime=0)
        return _lines(body, rng)
    return _bytes(body, rng)


def _lines(body: bytes, rng: random.Random) -> bytes:
    """Mutate one line of JSON, or the one document."""
    text = body.decode()
    with suppress(ValueError):
        return _written(_json(json.loads(text), rng)).encode("utf-8", "surrogatepass")
    lines = text.splitlines()
    at = rng.randrange(len(lines))
    kind = rng.random()
    if kind < 0.1:
        lines.insert(rng.randrange(len(lines) + 1), lines[at])
    elif kind < 0.15:
        del lines[at]
    else:
        lines[at] = _written(_json(json.loads(lines[at]), rng))
    return "".join(f"{each}\n" for each in lines).encode("utf-8", "surrogatepass")


class _Raw(str):
    """Text that stands in JSON as it is."""

    __slots__ = ()


def _written(said: Any) -> str:
    """Return JSON; deep nesting is spliced in, since the encoder is recursive."""
    raws: list[str] = []

    def plain(value: Any) -> Any:
        if isinstance(value, _Raw):
            raws.append(value)
            return f"(raw {len(raws) - 1})"
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list) else value

    text = json.dumps(plain(said), ensure_ascii=True)
    for number, each in enumerate(raws):
        text = text.replace(f'"(raw {number})"', each)
    return text


def _nodes(said: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys or positions."""
    left = [said]
    while left:
        at = left.pop()
        keys: Any = (
            at.keys() if isinstance(at, dict) else range(len(at)) if type(at) is list else ()
        )
        for key in [*keys]:
            yield at, key
            left.append(at[key])


def _json(said: Any, rng: random.Random) -> Any:
    """Return JSON with one change; it is made in place."""
    nodes = [*_nodes(said)]
    if not nodes or rng.random() < 0.01:
        return _value(said, rng)
    at, key = rng.choice(nodes)
    value, kind = at[key], rng.random()
    if kind < 0.12:
        del at[key]
    elif kind < 0.20:
        other, its_key = rng.choice(nodes)
        at[key] = json.loads(json.dumps(other[its_key]))
    elif kind < 0.28 and isinstance(at, list):
        at.insert(rng.randrange(len(at) + 1), json.loads(json.dumps(value)))
    elif kind < 0.34 and isinstance(at, dict):
        other, its_key = rng.choice(nodes)
        named = its_key if isinstance(its_key, str) else rng.choice(_TEXTS)
        at[named] = at.pop(key) if rng.random() < 0.5 else value
    elif kind < 0.60 and isinstance(value, str) and value[:1] in "{[":
        with suppress(ValueError):
            at[key] = _written(_json(json.loads(value), rng))
    else:
        at[key] = _value(value, rng)
    return said


def _value(value: Any, rng: random.Random) -> Any:
    """Return something else in the place of a value, often of its kind."""
    kind = rng.random()
    if kind < 0.03:
        depth, (begin, end) = rng.choice(_DEPTHS), rng.choice((("[", "]"), ('{"a":', "}")))
        return _Raw(begin * depth + "1" + end * depth)
    if kind < 0.25:
        return rng.choice((*_VALUES, rng.choice(_NUMBERS), rng.choice(_TEXTS)))
    some = rng.choice(_TEXTS)
    others: tuple[Any, ...] = (*_NUMBERS, *_TEXTS)
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (value + 1, value - 1, -value, rng.choice(_NUMBERS), str(value))
    elif isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        others = (some, value[:at], value[:at] + some + value[at:], value.swapcase())
    elif isinstance(value, list):
        others = ([], value * 2, value[::-1], value[:1], {"0": value}, [value])
    elif isinstance(value, dict):
        others = ({}, [value], [*value], {**value, some: 1})
    return rng.choice(others)


def _bytes(body: bytes, rng: random.Random) -> bytes:
    """Return bytes with one or a few of them changed."""
    if not body:
        return rng.choice((b"", b"{}", b"\xff", b"Obj\x01", b"PAR1", b"[]", b"null"))
    at, end = sorted((rng.randrange(len(body)), rng.randrange(len(body))))
    flipped = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 8))):
        flipped[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    some = rng.choice((b"\xff" * 9 + b"\x01", b"\x00", b"\x80" * 5, b"\x01", b"\xfe\xff"))
    return rng.choice(
        (
            bytes(flipped),
            bytes(flipped),
            body[:at],
            body[:at] + body[end:],
            body[:at] + body[at:end] * 2 + body[end:],
            body[:at] + rng.randbytes(rng.choice((1, 2, 8))) + body[at:],
            body[:at] + some + body[at + len(some) :],
        )
    )


def _avro(body: bytes, rng: random.Random) -> bytes:
    """Return a container with a value, its schema, its header or its codec changed."""
    import fastavro

    reader: Any = fastavro.reader(io.BytesIO(body))
    header = {key: str(each) for key, each in reader.metadata.items()}
    records = [*reader]
    kind = rng.random()
    if kind < 0.3:
        # The blocks stay, whatever the header says of them.
        changed = dict(header)
        if rng.random() < 0.7:
            changed["avro.schema"] = _written(_json(json.loads(header["avro.schema"]), rng))
        else:
            key = rng.choice([*changed])
            changed[key] = str(rng.choice((*_TEXTS, *_NUMBERS, "deflate", "zstandard", "snappy")))
        begin = body.index(b"s" * 16) if b"s" * 16 in body else _header_end(body)
        out = io.BytesIO()
        out.write(b"Obj\x01")
        encodable = {key: each.encode("utf-8", "replace") for key, each in changed.items()}
        fastavro.schemaless_writer(out, {"type": "map", "values": "bytes"}, encodable)
        return out.getvalue() + body[begin:]
    schema = json.loads(header["avro.schema"])
    rest = {key: each for key, each in header.items() if not key.startswith("avro.")}
    if kind < 0.8 and records:
        at = rng.randrange(len(records))
        records[at] = _record(records[at], rng)
    elif kind < 0.9:
        records = rng.choice(([], records * 2, records[::-1]))
    elif rest:
        key = rng.choice([*rest])
        try:
            rest[key] = _written(_json(json.loads(rest[key]), rng))
        except ValueError:
            rest[key] = str(_value(rest[key], rng))
    out = io.BytesIO()
    codec = rng.choice(("null", "null", "null", "deflate", "zstandard"))
    rest = {key: each.encode("utf-8", "replace").decode() for key, each in rest.items()}
    fastavro.writer(out, schema, records, codec=codec, metadata=rest, sync_marker=b"s" * 16)
    return out.getvalue()


def _header_end(body: bytes) -> int:
    """Return the position of a container's sync marker in its header: the last 16 bytes."""
    return body.index(body[-16:])


def _record(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a record with a value of its kind changed, so that it still fits its schema."""
    nodes = [(at, key) for at, key in _nodes(record) if not isinstance(at[key], dict | list)]
    at, key = rng.choice(nodes)
    value = at[key]
    if isinstance(value, bool):
        at[key] = not value
    elif isinstance(value, int):
        some = [each for each in _NUMBERS if isinstance(each, int) and abs(each) < 2**63]
        at[key] = rng.choice((value + 1, -value, *some))
    elif isinstance(value, str):
        at[key] = rng.choice((*_TEXTS, value + "x", value[:-1]))
    elif isinstance(value, bytes):
        at[key] = rng.choice((b"", b"\xff", value * 2, value[:-1], value + b"\0", b"\0" * 9))
    else:
        at[key] = rng.choice((None, 0, -1, 2**31, "", "a", b"", [], {}, 1.5, False))
    return record


def _parquet(body: bytes, rng: random.Random) -> bytes:
    """Return a Parquet file with a value changed, or bytes of its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.5:
        length = min(int.from_bytes(body[-8:-4], "little"), len(body) - 8)
        begin = len(body) - 8 - length
        footer = bytearray(body[begin:-8])
        if rng.random() < 0.3:
            footer = bytearray(_bytes(bytes(footer), rng))
            return body[:begin] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        for _ in range(rng.choice((1, 1, 2, 4))):
            footer[rng.randrange(len(footer))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.getrandbits(8))
            )
        return body[:begin] + footer + body[-8:]
    rows = pq.read_table(pa.BufferReader(body)).to_pylist()
    for _ in range(rng.choice((1, 1, 2))):
        rows = json.loads(json.dumps(rows, default=str))
        rows = _json(rows, rng)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, compression="none")
    return out.getvalue()


def _export(body: bytes, rng: random.Random) -> bytes:
    """Return lines with one changed; mostly so that their hashes fit again."""
    changed = _lines(body, rng)
    return rehashed(changed) if rng.random() < 0.85 else changed


def rehashed(body: bytes) -> bytes:
    """Return lines whose hashes and counts are those of the lines before them."""
    lines: list[bytes] = []
    head, commits, files, streams = "", 0, 0, 0
    stream: int | None = None

    def end_stream() -> None:
        if stream is not None:
            lines[stream] = _line({**json.loads(lines[stream]), "head": head})

    for line in body.splitlines():
        try:
            said = json.loads(line)
            kind = said.get("lakeledger", "commit")
        except (ValueError, AttributeError, RecursionError):
            said, kind = None, ""
        if kind == "stream":
            end_stream()
            stream, head, streams = len(lines), "", streams + 1
        elif kind == "file":
            files += 1
        elif kind == "commit" and said is not None:
            if "parent" in said or head:
                said = {**said, "parent": head}
            commits += 1
            line = _line(said).rstrip(b"\n")  # noqa: PLW2901 - the line as it has to be
            head = digest(line + b"\n")
        elif kind == "end":
            end_stream()
            stream = None
            before = hashlib.sha256(b"".join(lines)).hexdigest()
            counts = {"streams": streams, "commits": commits, "files": files}
            line = _line({**said, **counts, "sha256": before}).rstrip(b"\n")  # noqa: PLW2901 - as above
        lines.append(line + b"\n")
    return b"".join(lines)


def _line(said: Any) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"
