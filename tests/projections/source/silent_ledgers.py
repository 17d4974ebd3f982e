"""Format `silent`: the writer of `ledger`, whose store falls silent when a test says so.

Spark commits in a process of its own, so the test says it by a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from ledger import Ledger
from ledger.stores import LocalStore, Store
from projections.source.data_source import LedgerDataSource
from projections.source.row_writer import BatchRowWriter, StreamRowWriter, WriteJob
from projections.source.write_options import WriteOptions
from projections.spark_tasks import LedgerLocation
from tests.faults import Wrapped
from tests.lakes import lake_on, no_time

Moment = Literal["before", "after"]


def is_commit(key: str) -> bool:
    return "orders/_ledger/log" in key


class FallsSilent(Wrapped):
    """A store that answers nothing from a table's commit on while a file names the moment."""

    def __init__(self, inner: Store, moment: Path) -> None:
        super().__init__(inner)
        self._moment = moment
        self._is_silent = False

    def create(self, key: str, body: bytes) -> bool:
        if is_commit(key) and self._moment.exists():
            if self._moment.read_text() == "after" and not self._is_silent:
                super().create(key, body)
            self._is_silent = True
        return self._answering().create(key, body)

    def read(self, key: str) -> bytes | None:
        return self._answering().read(key)

    def confirm(self, key: str) -> bytes | None:
        return self._answering().confirm(key)

    def exists(self, key: str) -> bool:
        return self._answering().exists(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return self._answering().read_many(keys)

    def _answering(self) -> Store:
        if self._is_silent:
            raise OSError("the store does not answer")
        return self.inner


@frozen
class SilentLocation(LedgerLocation):
    """Location of a ledger in a folder; the file `silent` beside it names the moment."""

    def open(self) -> Ledger:
        folder = Path(self.url.removeprefix("file://"))
        return lake_on(FallsSilent(LocalStore(folder), moment_of(folder)), retry_policy=no_time())


def moment_of(folder: Path) -> Path:
    return folder.with_name("silent")


def silenced(job: WriteJob) -> WriteJob:
    return evolve(job, options=evolve(job.options, root=SilentLocation(job.options.root.url)))


class SilentDataSource(LedgerDataSource):
    """`df.write.format("silent")`."""

    @classmethod
    def name(cls) -> str:
        return "silent"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        options = WriteOptions.of(self.options, overwrite=overwrite)
        return BatchRowWriter(silenced(WriteJob.plan(options, schema)))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001 - Spark's signature
        options = WriteOptions.of(self.options, overwrite=overwrite)
        return StreamRowWriter(silenced(WriteJob.plan(options, schema)))
