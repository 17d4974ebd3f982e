"""Rules of how MAP and VARIANT columns are laid out in files."""

from __future__ import annotations

from ledger.evolution.refusals import argument
from ledger.evolution.validation.formats import file_format, level_values
from ledger.evolution.validation.subject import Subject, contains_root
from ledger.model.types import MapType

_PREFIX, _SUFFIX = "fields.", ".map.storage-layout"
_LAYOUTS = ("default", "shared-shredding")
_POLICIES = ("plain", "sequential", "lru")
_COMPRESSIONS = frozenset({"none", "lz4", "zstd"})


def map_layout(subject: Subject) -> None:
    """Check that `map.storage-layout` is said of MAP columns, and what shredding needs.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    shredded = False
    for key in subject.options.values:
        if not key.startswith(_PREFIX) or not key.endswith(_SUFFIX):
            continue
        name = key.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        column = subject.columns.get(name)
        if column is None or not isinstance(column.type, MapType):
            raise argument(f"option {key}: {name} is not a MAP column")
        if subject.options.choice(key, "default", _LAYOUTS) == "default":
            continue
        shredded = True
        if column.type.key.root != "VARCHAR" or column.type.key.nullable:
            raise argument(f"option {key}: the key of {name} must be STRING NOT NULL")
        _check_shredding(subject, name)
    if shredded:
        _check_files(subject)
        _check_columns(subject)


def _check_shredding(subject: Subject, name: str) -> None:
    key = f"{_PREFIX}{name}.map.shared-shredding.max-columns"
    if subject.options.number(key, 256) < 1:
        raise argument(f"option {key} must be at least 1")
    policy = f"{_PREFIX}{name}.map.shared-shredding.column-placement-policy"
    subject.options.choice(policy, "lru", _POLICIES)


def _check_files(subject: Subject) -> None:
    options = subject.options
    formats = [
        file_format(options, "file.format") or "parquet",
        *level_values(options, "file.format.per.level"),
        file_format(options, "changelog-file.format"),
    ]
    for each in formats:
        if each and each not in {"parquet", "orc"}:
            raise argument(f"map.storage-layout shared-shredding needs Parquet or ORC, not {each}")
    compressions = [
        options.text("file.compression"),
        *level_values(options, "file.compression.per.level"),
        options.text("changelog-file.compression"),
    ]
    for compression in compressions:
        if compression and compression.lower() not in _COMPRESSIONS:
            raise argument(
                f"map.storage-layout shared-shredding does not go with compression {compression}"
            )


def _check_columns(subject: Subject) -> None:
    for column in subject.unusual:
        if contains_root(column.type, "VARIANT", "MULTISET"):
            raise argument(
                f"map.storage-layout shared-shredding does not go with column {column.name}'s type"
            )
        if (
            isinstance(column.type, MapType)
            and subject.is_shredded(column.name)
            and contains_root(column.type.value, "BLOB", "VECTOR")
        ):
            raise argument(
                f"map.storage-layout shared-shredding: values of {column.name} cannot hold "
                "BLOB or VECTOR"
            )
    if subject.options.bucket == -2:  # noqa: PLR2004 - postponed buckets
        raise argument("map.storage-layout shared-shredding does not go with bucket=-2")


def variant_shredding(subject: Subject) -> None:
    """Check how many rows, and how full fields, the shredding of VARIANT columns looks at.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options, prefix = subject.options, "variant.shredding"
    _check_rows(subject, f"{prefix}.maxInferBufferRow", 4096)
    admission = options.fraction(f"{prefix}.minFieldCardinalityRatio", 0.1)
    if not 0 <= admission <= 1:
        raise argument(f"option {prefix}.minFieldCardinalityRatio must be between 0 and 1")
    mode = options.choice(f"{prefix}.inferenceMode", "per-file", ("per-file", "adaptive"))
    if mode == "per-file":
        return
    _check_rows(subject, f"{prefix}.adaptive.maxInferBufferRow", 256)
    retention = options.fraction(f"{prefix}.adaptive.retentionRatio", 0.05)
    if not 0 <= retention <= admission:
        raise argument(f"option {prefix}.adaptive.retentionRatio must be at most {admission}")


def _check_rows(subject: Subject, key: str, default: int) -> None:
    if subject.options.number(key, default) < 1:
        raise argument(f"option {key} must be at least 1")
