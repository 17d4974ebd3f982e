"""Which schemas inside an Avro file are safe to read records by.

A container brings its own schema, so a changed one could ask for endless or bottomless values.
"""

from __future__ import annotations

from typing import Any

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_DEEPEST = 16
_MOST_TYPES = 100_000
"""Types in a schema: a manifest's has some 60, and one for each field that partitions its files."""
_VALUES_A_BYTE = 4
_SPARE_VALUES = 64
"""Values that no byte stands for cost memory all the same: an empty record, null. A list may repeat
each of its elements' as often as it has bytes, and a file each of its records' more seldom."""


def readable_schema(schema: Any) -> Any:
    """Return a file's schema, parsed, with logical types taken as their plain numbers.

    Args:
        schema: As the file has it, names in full.

    Raises:
        ValueError: It is no record, contains itself, nests too deep, or has values without bytes
            in places where any number of them could stand.
    """
    import fastavro

    plain = _plain(schema, {}, 0)
    if not isinstance(plain, dict) or plain["type"] != "record" or not _takes_bytes(plain, {}):
        raise ValueError("its schema is no record with fields")
    _check_densities(plain)
    return fastavro.parse_schema(plain)


def _plain(schema: Any, known: dict[str, Any], depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(f"its schema nests more than {_DEEPEST} types")
    if isinstance(schema, list):
        return [_plain(each, known, depth + 1) for each in schema]
    if isinstance(schema, str):
        if schema not in _PRIMITIVES and not _takes_bytes(known.get(schema, "null"), known):
            raise ValueError(f"its schema uses {schema} before it is complete, or it is empty")
        return schema
    return _plain_complex(schema, known, depth)


def _plain_complex(schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
    match schema["type"]:
        case "record":
            fields = [
                {"name": each["name"], "type": _plain(each["type"], known, depth + 1)}
                for each in schema["fields"]
            ]
            plain = {"type": "record", "name": schema["name"], "fields": fields}
            known[schema["name"]] = plain
            return plain
        case "array":
            items = _plain(schema["items"], known, depth + 1)
            if not _takes_bytes(items, known):
                raise ValueError("its schema has an array of values without bytes")
            return {"type": "array", "items": items}
        case "map":
            return {"type": "map", "values": _plain(schema["values"], known, depth + 1)}
        case "enum" | "fixed" as kind:
            plain = {"type": kind, "name": schema["name"]}
            plain |= {key: schema[key] for key in ("symbols", "size") if key in schema}
            known[schema["name"]] = plain
            return plain
        case kind:
            return _plain(kind, known, depth + 1)


def _check_densities(plain: Any) -> None:
    """Check that no value has many more values in it than the least bytes that it stands in.

    Raises:
        ValueError: One has, or there are too many types.
    """
    sizes: dict[str, tuple[int, int]] = {}
    types = 0

    def sizes_of(schema: Any) -> tuple[int, int]:
        """Return the least bytes of a value, and how many values are in it."""
        nonlocal types
        types += 1
        if types > _MOST_TYPES:
            raise ValueError(f"its schema has more than {_MOST_TYPES} types")
        if isinstance(schema, str):
            return sizes.get(schema, (int(schema != "null"), 1))
        if isinstance(schema, list):
            found = [sizes_of(each) for each in schema]
            return 1, max((values for _, values in found), default=1)
        if schema["type"] == "record":
            inside = [sizes_of(each["type"]) for each in schema["fields"]]
            least, values = (sum(each) for each in zip((0, 1), *inside, strict=True))
            sizes[schema["name"]] = least, values
            return least, values
        if schema["type"] == "fixed":
            sizes[schema["name"]] = int(schema["size"]), 1
            return int(schema["size"]), 1
        if schema["type"] in {"array", "map"}:
            inner = sizes_of(schema["items" if schema["type"] == "array" else "values"])
            _refuse_dense(*inner, spare=0)
        return 1, 1

    _refuse_dense(*sizes_of(plain), spare=_SPARE_VALUES)


def _refuse_dense(least: int, values: int, *, spare: int) -> None:
    if values > _VALUES_A_BYTE * (least + 1) + spare:
        raise ValueError(f"its schema has {values} values that stand in {least} bytes")


def _takes_bytes(schema: Any, known: dict[str, Any]) -> bool:
    """Return whether every value of a plain schema stands in at least one byte."""
    if isinstance(schema, str):
        return schema in known or schema != "null"
    if isinstance(schema, dict) and schema["type"] == "record":
        return any(_takes_bytes(each["type"], known) for each in schema["fields"])
    if isinstance(schema, dict) and schema["type"] == "fixed":
        return int(schema["size"]) > 0
    # The branch of a union, the end of an array or map, the symbol of an enum take a byte each.
    return True
