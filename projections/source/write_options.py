"""Options of a write of the data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
import sqlglot
from attrs import field, frozen
from sqlglot import expressions as sql

from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.messages import excerpt, name_hint
from ledger.model.names import Identifier
from projections.spark_tasks import LedgerLocation

Mode = Literal["append", "overwrite", "dynamic"]
"""Effect on older rows: none; those of the table, or of the partitions of `where`, are replaced;
those of the partitions that get rows are replaced."""

_OPTIONS: Final = (
    "path",
    "table",
    "storageOptions",
    "author",
    "message",
    "commitUser",
    "commitIdentifier",
    "partitionOverwriteMode",
    "replaceWhere",
    "checkpointLocation",
)
_KNOWN: Final = {each.lower() for each in _OPTIONS}
_OF_SPARK: Final = frozenset({"queryname", "outputmode"})
_LONG: Final = 2**63


@frozen
class WriteOptions:
    """Options of a write.

    Attributes:
        root: The ledger.
        table: The table's full name.
        mode: The mode.
        where: Values of the partition keys whose partitions are replaced; None for all.
        author: The commit's author; empty for the ledger's default.
        message: The commit's message; empty for none.
        key: Commit user and identifier of a batch job, which is committed once; None without.
    """

    root: LedgerLocation
    table: str
    mode: Mode
    where: Mapping[str, PartitionValue] | None = field(default=None, hash=False)
    author: str = ""
    message: str = ""
    key: tuple[str, int] | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
        """Return the parsed options; their names are case-insensitive.

        Args:
            options: `path` (the ledger's root), `table`, and others.
            overwrite: Whether the rows replace others.

        Raises:
            InvalidInputError: One is missing, unknown, or invalid.
            InvalidNameError: `table` is no table's name.
        """
        given = {name.lower(): str(value) for name, value in options.items()}
        unknown = sorted(given.keys() - _KNOWN - _OF_SPARK)
        if unknown:
            raise InvalidInputError(
                f"there is no option {unknown[0]!r} of a write; {name_hint(unknown[0], _OPTIONS)}"
            )
        mode = _parse_mode(given, overwrite=overwrite)
        return cls(
            root=_parse_root(given),
            table=_parse_table(given.get("table", "")),
            mode=mode,
            where=_parse_where(given.get("replacewhere"), mode),
            author=given.get("author", ""),
            message=given.get("message", ""),
            key=_parse_key(given),
        )


def _parse_root(given: Mapping[str, str]) -> LedgerLocation:
    url = given.get("path", "")
    if not url:
        raise InvalidInputError(
            "no ledger is given; give its root: .save(URL); a table of Spark's catalog that uses "
            "ledger is a view of a log, and takes no rows"
        )
    if url.startswith("memory:"):
        raise InvalidInputError(
            f"{url} exists in one process alone, and Spark writes in others: keep the ledger in a "
            "folder or a bucket"
        )
    text = given.get("storageoptions", "{}")
    try:
        return LedgerLocation(url, msgspec.json.decode(text, type=dict[str, Any]))
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"option storageOptions is no JSON object: {error}") from error


def _parse_table(name: str) -> str:
    if not name:
        raise InvalidInputError('no table is given; give .option("table", "DATABASE.TABLE")')
    return str(Identifier.parse(name))


def _parse_mode(given: Mapping[str, str], *, overwrite: bool) -> Mode:
    text = given.get("partitionoverwritemode", "static").lower()
    if text not in ("static", "dynamic"):
        raise InvalidInputError(
            f"option partitionOverwriteMode is {text!r}; give static or dynamic"
        )
    if text == "static":
        return "overwrite" if overwrite else "append"
    if not overwrite:
        raise InvalidInputError('partitionOverwriteMode=dynamic needs .mode("overwrite")')
    return "dynamic"


def _parse_key(given: Mapping[str, str]) -> tuple[str, int] | None:
    user, text = given.get("commituser"), given.get("commitidentifier")
    if user is None and text is None:
        return None
    if not user or text is None:
        raise InvalidInputError(
            "commitUser and commitIdentifier are the key of a job together; give both"
        )
    try:
        identifier = int(text)
    except ValueError:
        identifier = -1
    if not 0 <= identifier < _LONG:
        raise InvalidInputError(
            f"option commitIdentifier is {text!r}; give a whole number from 0 to 2^63 - 1"
        )
    return user, identifier


def _parse_where(text: str | None, mode: Mode) -> Mapping[str, PartitionValue] | None:
    if text is None:
        return None
    if mode != "overwrite":
        raise InvalidInputError(
            f'option replaceWhere is of .mode("overwrite"), and the mode is {mode}; leave it out'
        )
    return parse_partition_values(text)


def parse_partition_values(text: str) -> dict[str, PartitionValue]:
    """Return the values in a condition of equalities on partition keys, joined by AND.

    Raises:
        InvalidInputError: The text is something else.

    Example:
        >>> parse_partition_values("day = DATE '2026-01-01' AND bucket = 3")
        {'day': '2026-01-01', 'bucket': 3}
    """
    try:
        condition = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise _condition_error(text) from error
    values: dict[str, PartitionValue] = {}
    for each in _conjuncts(condition):
        name, value = _parse_equality(each, text)
        if name in values:
            raise InvalidInputError(
                f"{excerpt(text)} names {name} twice, and a partition has one value of it; name "
                "each partition key once"
            )
        values[name] = value
    return values


def _condition_error(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"{excerpt(text)} is no condition on partitions; give equalities on partition keys joined "
        "by AND, such as day = '2026-01-01'"
    )


def _conjuncts(condition: Any) -> Iterator[Any]:
    if isinstance(condition, sql.And):
        yield from _conjuncts(condition.this)
        yield from _conjuncts(condition.expression)
    elif isinstance(condition, sql.Paren):
        yield from _conjuncts(condition.this)
    else:
        yield condition


def _parse_equality(condition: Any, text: str) -> tuple[str, PartitionValue]:
    column, value = condition.this, condition.args.get("expression")
    if not isinstance(condition, sql.EQ | sql.Is) or not isinstance(column, sql.Column):
        raise _condition_error(text)
    name = ".".join(each.name for each in column.parts)
    if isinstance(value, sql.Cast):
        value = value.this
    if isinstance(condition, sql.Is) != isinstance(value, sql.Null):
        raise _condition_error(text)
    match value:
        case sql.Null():
            return name, None
        case sql.Boolean():
            return name, bool(value.this)
        case sql.Literal(is_string=True):
            return name, str(value.this)
        case sql.Literal() | sql.Neg(this=sql.Literal(is_string=False)):
            number = str(value.sql())
            return name, int(number) if number.lstrip("-").isdigit() else number
    raise _condition_error(text)
