"""Rules of the indexes of primary-key tables."""

from __future__ import annotations

from ledger.evolution.options.naming import INDEX_COLUMN_OPTIONS
from ledger.evolution.refusals import argument, unsupported
from ledger.evolution.validation.subject import Check, Subject
from ledger.model.types import ArrayType, DataType, VectorType

_VECTOR, _BTREE, _BITMAP, _MULTIVALUE, _FULL_TEXT = INDEX_COLUMN_OPTIONS
_METRICS = ("l2", "cosine", "inner_product")
_SORTED = (_BTREE, _BITMAP, _MULTIVALUE)


def _one_index_a_column(subject: Subject) -> None:
    owners: dict[str, str] = {}
    for option in INDEX_COLUMN_OPTIONS:
        for name in subject.options.names(option):
            if name in owners:
                raise argument(f"column {name} is listed in {owners[name]} and in {option}")
            owners[name] = option


def _sorted_indexes(subject: Subject) -> None:
    for option in _SORTED:
        names = subject.options.names(option)
        if not names:
            continue
        if not subject.options.flag("deletion-vectors.enabled"):
            raise argument(f"option {option} needs deletion-vectors.enabled=true")
        _check_table(subject, option)
        _check_exist(subject, option)
    for option in _SORTED:
        for name in subject.options.names(option):
            _check_sortable(option, name, subject.columns[name].type)


_SORTABLE = frozenset(
    {
        *("CHAR", "VARCHAR", "BOOLEAN", "DECIMAL", "TINYINT", "SMALLINT", "INT", "BIGINT"),
        *("FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    }
)


def _check_sortable(option: str, name: str, data_type: DataType) -> None:
    if option == _MULTIVALUE:
        if not isinstance(data_type, ArrayType):
            raise argument(f"option {option} names {name}, which is not an ARRAY column")
        data_type = data_type.element
    if data_type.root not in _SORTABLE:
        raise unsupported(f"option {option}: {name} holds {data_type.root}, which has no order")


def _vector_index(subject: Subject) -> None:
    names = subject.options.names(_VECTOR)
    if not names:
        return
    name = _only(_VECTOR, names)
    index_type = subject.options.text(f"fields.{name}.pk-vector.index.type")
    if not (index_type or "").strip():
        raise argument(f"option {_VECTOR} needs option fields.{name}.pk-vector.index.type")
    _check_deletion_vectors(subject, _VECTOR)
    _check_table(subject, _VECTOR)
    column = subject.columns.get(name)
    if column is None or not isinstance(column.type, VectorType):
        raise argument(f"option {_VECTOR} names {name}, which is not a VECTOR column")
    if column.type.element.root != "FLOAT":
        raise argument(f"option {_VECTOR}: {name} must hold FLOAT elements")
    metric = subject.options.text(f"fields.{name}.pk-vector.distance.metric")
    if metric is not None and metric.lower().replace("-", "_") not in _METRICS:
        raise argument(f"option {_VECTOR}: {name} is measured by one of {', '.join(_METRICS)}")


def _full_text_index(subject: Subject) -> None:
    names = subject.options.names(_FULL_TEXT)
    if not names:
        return
    name = _only(_FULL_TEXT, names)
    _check_deletion_vectors(subject, _FULL_TEXT)
    _check_table(subject, _FULL_TEXT)
    _check_exist(subject, _FULL_TEXT)
    if subject.columns[name].type.root not in {"CHAR", "VARCHAR"}:
        raise argument(f"option {_FULL_TEXT}: {name} must be CHAR, VARCHAR or STRING")


def _only(option: str, names: tuple[str, ...]) -> str:
    if len(names) != 1:
        raise argument(f"option {option} takes one column, not {list(names)}")
    return names[0]


def _check_deletion_vectors(subject: Subject, option: str) -> None:
    options = subject.options
    if options.merge_engine != "first-row" and not options.flag("deletion-vectors.enabled"):
        raise argument(f"option {option} needs deletion-vectors.enabled=true")


def _check_table(subject: Subject, option: str) -> None:
    options = subject.options
    if not subject.has_primary_key:
        raise argument(f"option {option} needs a primary key")
    if options.bucket < 1 and options.bucket != -2:  # noqa: PLR2004 - postponed buckets
        raise argument(f"option {option} needs a fixed or postponed number of buckets")
    merges = options.flag("deletion-vectors.merge-on-read")
    if merges and options.flag("deletion-vectors.enabled"):
        raise argument(f"option {option} needs deletion-vectors.merge-on-read=false")
    if options.flag("pk-clustering-override"):
        raise argument(f"option {option} does not go with pk-clustering-override")


def _check_exist(subject: Subject, option: str) -> None:
    for name in subject.options.names(option):
        if name not in subject.columns:
            raise argument(f"option {option} names {name}, which is not a column")


CHECKS: tuple[Check, ...] = (
    _one_index_a_column,
    _sorted_indexes,
    _vector_index,
    _full_text_index,
)
"""The rules of primary-key indexes."""
