"""Which of a column's facts a table keeps of its files: Iceberg's metrics modes, by its properties.

Source: Iceberg's table properties `write.metadata.metrics.default` and
`write.metadata.metrics.column.PATH`, and its MetricsModes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from ledger.files.registering.bounds import TRUNCATE_LENGTH
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema, paths_of

METRICS_DEFAULT: Final = "write.metadata.metrics.default"
METRICS_COLUMN: Final = "write.metadata.metrics.column."
"""A column's path follows."""

_is_truncate = re.compile(r"truncate\(([1-9][0-9]{0,8})\)").fullmatch


@frozen
class MetricsMode:
    """What is kept of a column.

    Attributes:
        counts: Whether its values and nulls are counted.
        length: After how many characters, or bytes, a bound is cut; 0 where none is kept, None
            where it is kept whole.
    """

    counts: bool
    length: int | None


DEFAULT_MODE: Final = MetricsMode(counts=True, length=TRUNCATE_LENGTH)
_BY_NAME: Final = {
    "none": MetricsMode(counts=False, length=0),
    "counts": MetricsMode(counts=True, length=0),
    "full": MetricsMode(counts=True, length=None),
}


@frozen
class MetricsModes:
    """The modes of a table's columns.

    Attributes:
        by_default: That of a column of which nothing is said.
        by_id: The others, by field id.
    """

    by_default: MetricsMode = DEFAULT_MODE
    by_id: Mapping[int, MetricsMode] = {}

    def of(self, field_id: int) -> MetricsMode:
        """Return a column's mode."""
        return self.by_id.get(field_id, self.by_default)


def metrics_modes(schema: Schema) -> MetricsModes:
    """Return what a table keeps of its columns, by its options.

    Raises:
        InvalidChangeError: One of them is no mode: a bound that nobody wanted would stay for good.

    Example:
        >>> options = {"write.metadata.metrics.column.mail": "none"}
        >>> modes = metrics_modes(Schema.of({"id": "INT", "mail": "STRING"}, options=options))
        >>> modes.of(0).length, modes.of(1)
        (16, MetricsMode(counts=False, length=0))
    """
    said = {key: each for key, each in schema.options.items() if key.startswith(METRICS_COLUMN)}
    by_default = schema.options.get(METRICS_DEFAULT)
    by_path = {key: _mode(key, each) for key, each in said.items()}
    return MetricsModes(
        DEFAULT_MODE if by_default is None else _mode(METRICS_DEFAULT, by_default),
        {
            field_id: by_path[key]
            for path, field_id in (paths_of(schema) if said else ())
            if (key := METRICS_COLUMN + ".".join(path)) in by_path
        },
    )


def _mode(key: str, text: str) -> MetricsMode:
    wanted = text.strip().lower()
    truncated = _is_truncate(wanted)
    if truncated:
        return MetricsMode(counts=True, length=int(truncated[1]))
    if wanted not in _BY_NAME:
        raise InvalidChangeError(
            f"option {key} is {text!r}, which is no metrics mode; set none, counts, truncate(16) "
            "or full"
        )
    return _BY_NAME[wanted]
