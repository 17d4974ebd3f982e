"""RowScan: PyIceberg's scan, over the files that the ledger's plan names.

PyIceberg 0.12 plans with an error where the filter compares a partition value that is NULL, and by
the newest schema where a snapshot is older; the ledger does neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.table import DataScan, FileScanTask

from ledger.model.errors import DamagedLogError

_OF_THE_SAME_FILES = {"selected_fields", "case_sensitive", "options", "limit"}
_PROPERTIES = ("table_metadata", "io", "row_filter", "snapshot_id", *sorted(_OF_THE_SAME_FILES))


class RowScan(DataScan):
    """A scan whose files are known.

    Args:
        location: Where the table is.
        residuals: By the URI of each data file to read, what is left to filter its rows by.
        scan: What PyIceberg's scan takes.
    """

    def __init__(
        self, *, location: str, residuals: Mapping[str, BooleanExpression], **scan: Any
    ) -> None:
        super().__init__(**scan)
        self._location = location
        self._residuals = residuals

    def plan_files(self) -> Iterable[FileScanTask]:
        """Return the files to read, with the deletes that apply to each.

        Raises:
            DamagedLogError: The projected files list others than the ledger's plan.
        """
        everything = list(self._with(DataScan, row_filter=AlwaysTrue()).plan_files())
        found = [
            FileScanTask(each.file, each.delete_files, self._residuals[each.file.file_path])
            for each in everything
            if each.file.file_path in self._residuals
        ]
        missing = sorted(self._residuals.keys() - {each.file.file_path for each in found})
        if missing:
            listed = next((each.file.file_path for each in everything), "no file at all")
            raise DamagedLogError(
                f"{len(missing)} files of the table at {self._location} are not among its Iceberg "
                f"files, {missing[0]} for one; they list {listed}. They were made at another "
                f"place, or changed since: remove {self._location}/metadata, then read again",
                missing[0],
            )
        return found

    def filter(self, expr: str | BooleanExpression) -> RowScan:
        """Return this scan with fewer rows, of the same files."""
        also = parse(expr) if isinstance(expr, str) else expr
        narrowed = {path: And(each, also) for path, each in self._residuals.items()}
        row_filter = And(self.row_filter, also)
        scan: RowScan = self._with(
            RowScan, location=self._location, row_filter=row_filter, residuals=narrowed
        )
        return scan

    def update(self, **overrides: Any) -> Any:
        """Return this scan with some properties changed; PyIceberg plans what needs other files."""
        if overrides.keys() <= _OF_THE_SAME_FILES:
            return self._with(
                RowScan, location=self._location, residuals=self._residuals, **overrides
            )
        return self._with(DataScan, **overrides)

    def _with(self, kind: Any, **overrides: Any) -> Any:
        return kind(**{**{each: getattr(self, each) for each in _PROPERTIES}, **overrides})
