"""Values: types, schemas, partition specs, snapshots, file changes, errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.model.arrow_types import from_arrow_type
    from ledger.model.file_change import PartitionValue, inline_files
    from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortField, SortOrder
    from ledger.model.iceberg_objects import (
        BlobMetadata,
        IcebergViewVersion,
        MetadataLogEntry,
        PartitionStatisticsFile,
        SnapshotRef,
        StatisticsFile,
        ViewRepresentation,
    )
    from ledger.model.iceberg_types import value_from_json
    from ledger.model.instant import (
        ClockCorrection,
        SnapshotInstant,
        TagInstant,
        TimestampInstant,
        VersionInstant,
    )
    from ledger.model.schema import paths_of
    from ledger.model.single_values import Value, decode_value, encode_value
    from ledger.model.snapshot import (
        Branch,
        CommitKind,
        EngineBranch,
        Snapshot,
        Tag,
        Totals,
    )
    from ledger.model.transforms import partition_path, transform_of
    from ledger.model.types.casts import (
        can_alter,
        can_promote,
        default_value_fits,
        executable_cast,
        explicit_cast,
        implicit_cast,
    )
    from ledger.model.types.sql import read_type
    from ledger.model.types.text import format_type, parse_type
    from ledger.model.types.wire import (
        FieldObject,
        TypeJson,
        TypeObject,
        field_from_json,
        field_from_wire,
        field_to_json,
        field_to_wire,
        type_from_json,
        type_from_wire,
        type_to_json,
        type_to_wire,
    )

__all__ = [
    "BlobMetadata",
    "Branch",
    "ClockCorrection",
    "CommitKind",
    "EngineBranch",
    "FieldObject",
    "IcebergViewVersion",
    "MetadataLogEntry",
    "PartitionField",
    "PartitionSpec",
    "PartitionStatisticsFile",
    "PartitionValue",
    "Snapshot",
    "SnapshotInstant",
    "SnapshotRef",
    "SortField",
    "SortOrder",
    "StatisticsFile",
    "Tag",
    "TagInstant",
    "TimestampInstant",
    "Totals",
    "TypeJson",
    "TypeObject",
    "Value",
    "VersionInstant",
    "ViewRepresentation",
    "can_alter",
    "can_promote",
    "decode_value",
    "default_value_fits",
    "encode_value",
    "executable_cast",
    "explicit_cast",
    "exporter",
    "field_from_json",
    "field_from_wire",
    "field_to_json",
    "field_to_wire",
    "format_type",
    "from_arrow_type",
    "implicit_cast",
    "inline_files",
    "parse_type",
    "partition_path",
    "paths_of",
    "read_type",
    "transform_of",
    "type_from_json",
    "type_from_wire",
    "type_to_json",
    "type_to_wire",
    "value_from_json",
]


def exporter(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported when they are first used.

    Args:
        package: The package's name.
        homes: The exported names, by the module that defines them.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.model.arrow_types": ("from_arrow_type",),
            "ledger.model.file_change": ("PartitionValue", "inline_files"),
            "ledger.model.iceberg_layout": (
                "PartitionField",
                "PartitionSpec",
                "SortField",
                "SortOrder",
            ),
            "ledger.model.iceberg_objects": (
                "BlobMetadata",
                "IcebergViewVersion",
                "MetadataLogEntry",
                "PartitionStatisticsFile",
                "SnapshotRef",
                "StatisticsFile",
                "ViewRepresentation",
            ),
            "ledger.model.iceberg_types": ("value_from_json",),
            "ledger.model.instant": (
                "ClockCorrection",
                "SnapshotInstant",
                "TagInstant",
                "TimestampInstant",
                "VersionInstant",
            ),
            "ledger.model.schema": ("paths_of",),
            "ledger.model.single_values": ("Value", "decode_value", "encode_value"),
            "ledger.model.snapshot": (
                "Branch",
                "CommitKind",
                "EngineBranch",
                "Snapshot",
                "Tag",
                "Totals",
            ),
            "ledger.model.transforms": ("partition_path", "transform_of"),
            "ledger.model.types.casts": (
                "can_alter",
                "can_promote",
                "default_value_fits",
                "executable_cast",
                "explicit_cast",
                "implicit_cast",
            ),
            "ledger.model.types.sql": ("read_type",),
            "ledger.model.types.text": ("format_type", "parse_type"),
            "ledger.model.types.wire": (
                "FieldObject",
                "TypeJson",
                "TypeObject",
                "field_from_json",
                "field_from_wire",
                "field_to_json",
                "field_to_wire",
                "type_from_json",
                "type_from_wire",
                "type_to_json",
                "type_to_wire",
            ),
        },
    )
