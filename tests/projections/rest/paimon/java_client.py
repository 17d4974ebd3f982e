"""Paimon's Java client: a catalog of files, or Java's `RESTCatalog`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import define

from tests.projections.rest.paimon.java_objects import Boxed, JavaObject, PaimonJvm
from tests.projections.rest.paimon.paimon_clients import Json, Row, TableSpec, TableView, in_order

DATABASE = "shop"
ANY_TOKEN: Mapping[str, str] = {"token.provider": "bear", "token": "any"}
_TABLE = "table.FileStoreTable"

# Arguments of Java's methods, which have no names.
_IGNORE = False
_FULLY = True
_WAIT = True


@define
class JavaClient:
    """One catalog; its tables are in one database."""

    jvm: PaimonJvm
    catalog: JavaObject
    is_served: bool

    @classmethod
    def of_files(cls, jvm: PaimonJvm, warehouse: str) -> JavaClient:
        """Open a catalog of files."""
        return cls(jvm, _catalog(jvm, {"warehouse": warehouse}), is_served=False)

    @classmethod
    def of_server(
        cls, jvm: PaimonJvm, uri: str, warehouse: str, token: Mapping[str, str] = ANY_TOKEN
    ) -> JavaClient:
        """Open a catalog behind a server."""
        options = {"metastore": "rest", "uri": uri, "warehouse": warehouse}
        return cls(jvm, _catalog(jvm, {**options, **token}), is_served=True)

    def create_database(self) -> None:
        """Create the database of the tables."""
        self.catalog.createDatabase(DATABASE, _IGNORE)

    def create_table(self, name: str, spec: TableSpec) -> None:
        """Create a table."""
        builder = self.jvm.paimon.schema.Schema.newBuilder()
        for column, kind in spec.columns.items():
            builder.column(column, self.jvm.from_json(kind, "types.DataType"))
        builder.partitionKeys(self.jvm.array_list(spec.partition_keys))
        builder.primaryKey(self.jvm.array_list(spec.primary_keys))
        builder.options(self.jvm.linked_map(spec.options))
        builder.comment(spec.comment)
        schema = builder.build()
        self.catalog.createTable(self.identifier(name), schema, _IGNORE)

    def alter(self, name: str, *changes: Json) -> None:
        """Change a table's schema, by changes as Paimon's JSON has them."""
        wanted = [self.jvm.from_json(each, "schema.SchemaChange") for each in changes]
        self.catalog.alterTable(self.identifier(name), wanted, _IGNORE)

    def write(self, name: str, rows: Sequence[Row], options: Mapping[str, str] = {}) -> None:
        """Write rows in a batch job; `-` before a row deletes it."""
        table = self.table(name, options)
        builder = table.newBatchWriteBuilder()
        with self._writer(builder.newWrite()) as writer:
            self._write(table, writer, rows)
            self._commit(builder, writer.prepareCommit())

    def overwrite(self, name: str, partition: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Replace the rows of a partition, or of the table."""
        table = self.table(name)
        builder = table.newBatchWriteBuilder()
        builder = builder.withOverwrite(dict(partition))
        with self._writer(builder.newWrite()) as writer:
            self._write(table, writer, rows)
            self._commit(builder, writer.prepareCommit())

    def compact(self, name: str, partition: Row = (), bucket: int = 0) -> None:
        """Compact a bucket fully, or an append-only table without buckets."""
        table = self.table(name, {"write-only": "false"})
        builder = table.newBatchWriteBuilder()
        with self._writer(builder.newWrite()) as writer:
            writer.compact(self._binary_row(table, partition), bucket, _FULLY)
            self._commit(builder, writer.prepareCommit())

    def compact_manifests(self, name: str) -> None:
        """Rewrite the manifests of a table."""
        commit = self.table(name).newBatchWriteBuilder().newCommit()
        commit.compactManifests()
        commit.close()

    def analyze(self, name: str, rows: int) -> None:
        """Commit statistics of a table."""
        table = self.table(name)
        snapshot = table.snapshotManager().plain.latestSnapshot()
        statistics = self.jvm.paimon.stats.Statistics(
            snapshot.id(), snapshot.schemaId(), rows, 100, self.jvm.linked_map({})
        )
        commit = table.newBatchWriteBuilder().newCommit()
        commit.updateStatistics(statistics)
        commit.close()

    def stream(self, name: str, user: str, commits: Mapping[int, Sequence[Row]]) -> None:
        """Write rows in a streaming job, a commit an identifier."""
        table = self.table(name)
        builder = table.newStreamWriteBuilder().withCommitUser(user)
        commit = builder.newCommit()
        with self._writer(builder.newWrite()) as writer:
            for number, rows in commits.items():
                self._write(table, writer, rows)
                identifier = Boxed("Long", number)
                commit.commit(identifier, writer.prepareCommit(_WAIT, identifier))
        commit.seen_as("table.sink.TableCommit").close()

    def truncate(self, name: str, partitions: Sequence[Mapping[str, str]] = ()) -> None:
        """Remove all rows, or those of some partitions."""
        commit = self.table(name).newBatchWriteBuilder().newCommit()
        if partitions:
            commit.truncatePartitions([dict(each) for each in partitions])
        else:
            commit.truncateTable()
        commit.close()

    def create_tag(
        self, name: str, tag: str, snapshot: int | None = None, retained: str | None = None
    ) -> None:
        """Tag a snapshot, or the newest."""
        number = None if snapshot is None else Boxed("Long", snapshot)
        if self.is_served:
            self.catalog.createTag(self.identifier(name), tag, number, retained, _IGNORE)
            return
        duration = None
        if retained is not None:
            duration = self.jvm.paimon.utils.TimeUtils.parseDuration(retained)
        if number is None:
            self.table(name).createTag(tag, duration)
        else:
            self.table(name).createTag(tag, number, duration)

    def create_tag_file(self, name: str, tag: str, snapshot: int) -> None:
        """Tag a snapshot as procedures of Flink and Spark do: behind the catalog's back."""
        self.table(name).createTag(tag, Boxed("Long", snapshot))

    def expire(self, name: str, kept: int) -> int:
        """Expire all snapshots but the newest; return the number of those that expired."""
        moment = self.jvm.java.time.Duration.ofMillis(1)
        config = self.jvm.paimon.options.ExpireConfig.builder()
        config = config.snapshotRetainMin(kept).snapshotRetainMax(kept).snapshotTimeRetain(moment)
        found: int = self.table(name).newExpireSnapshots().config(config.build()).expire()
        return found

    def delete_tag(self, name: str, tag: str) -> None:
        """Delete a tag."""
        if self.is_served:
            self.catalog.deleteTag(self.identifier(name), tag)
        else:
            self.table(name).deleteTag(tag)

    def create_branch(self, name: str, branch: str, tag: str | None = None) -> None:
        """Create a branch, at a tag or empty."""
        if tag is None:
            self.table(name).createBranch(branch)
        else:
            self.table(name).createBranch(branch, tag)

    def drop_branch(self, name: str, branch: str) -> None:
        """Drop a branch."""
        self.table(name).deleteBranch(branch)

    def fast_forward(self, name: str, branch: str) -> None:
        """Let the main branch be another one."""
        self.table(name).fastForward(branch)

    def roll_back(self, name: str, to: int | str) -> None:
        """Return to a snapshot or a tag."""
        self.table(name).rollbackTo(Boxed("Long", to) if isinstance(to, int) else to)

    def roll_back_schema(self, name: str, schema: int) -> None:
        """Return to a schema."""
        self.table(name).rollbackSchema(Boxed("Long", schema))

    def rename_table(self, name: str, other: str) -> None:
        """Rename a table."""
        self.catalog.renameTable(self.identifier(name), self.identifier(other), _IGNORE)

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        self.catalog.dropTable(self.identifier(name), _IGNORE)

    def tables(self) -> list[str]:
        """Return the names of the tables."""
        return sorted(self.catalog.listTables(DATABASE))

    def rows(self, name: str, options: Mapping[str, str] = {}) -> list[str]:
        """Return rows as text, in order, with options such as `scan.snapshot-id`."""
        return self._rows(self.table(name, options))

    def system_rows(self, name: str) -> int:
        """Return the number of rows of a system table."""
        table = self.catalog.getTable(self.identifier(name))
        builder = table.newReadBuilder()
        splits = builder.newScan().plan().splits()
        return len(list(self._texts(table, builder, splits)))

    def changes(self, name: str, options: Mapping[str, str], plans: int) -> list[list[str]]:
        """Return what a streaming job reads, a list a plan; each row has its kind before it."""
        table = self.table(name, options)
        builder = table.newReadBuilder()
        scan = builder.newStreamScan()
        found = []
        for _ in range(plans):
            plan = scan.plan()
            found.append(in_order(self._texts(table, builder, plan.splits(), " ")))
        consumer = options.get("consumer-id")
        if consumer is not None:
            scan.notifyCheckpointComplete(Boxed("Long", scan.checkpoint()))
        return found

    def consumers(self, name: str) -> dict[str, int]:
        """Return the next snapshot of each consumer."""
        found = self.table(name).consumerManager().plain.consumers()
        return {key: found.get(key) for key in found.keySet()}

    def partitions(self, name: str) -> list[tuple[Any, ...]]:
        """Return each partition with its rows, files and bytes, as the catalog lists them."""
        found = self.catalog.listPartitions(self.identifier(name))
        return sorted(
            (
                sorted(dict(each.spec()).items()),
                each.recordCount(),
                each.fileCount(),
                each.fileSizeInBytes(),
            )
            for each in found
        )

    def view(self, name: str) -> TableView:
        """Load a table, and return what there is of it."""
        table = self.table(name)
        schemas = table.schemaManager().plain.listAll()
        snapshots = table.snapshotManager().plain.safelyGetAllSnapshots()
        tags = table.tagManager().plain.tagObjects()
        return TableView(
            sorted(self.jvm.to_json(schemas), key=_id),
            sorted(self.jvm.to_json(snapshots), key=_id),
            [{**json.loads(each.getLeft().toJson()), "name": each.getRight()} for each in tags],
            list(table.branchManager().branches()),
            lambda options: self._rows(_with_options(table, options)),
        )

    def identifier(self, name: str) -> Any:
        """Return a table's identifier."""
        return self.jvm.paimon.catalog.Identifier.create(DATABASE, name)

    def table(self, name: str, options: Mapping[str, str] = {}) -> JavaObject:
        """Load a table."""
        table: JavaObject = self.catalog.getTable(self.identifier(name)).seen_as(_TABLE)
        return _with_options(table, options)

    def _rows(self, table: JavaObject) -> list[str]:
        builder = table.newReadBuilder()
        splits = builder.newScan().plan().splits()
        return in_order(self._texts(table, builder, splits))

    def _write(self, table: JavaObject, writer: JavaObject, rows: Sequence[Row]) -> None:
        kinds = list(table.rowType().plain.getFieldTypes())
        keys: Any = None
        buckets: Any = None
        if table.bucketMode().plain.name() == "HASH_DYNAMIC":
            keys, buckets = self._bucket_assigner(table)
        for each in rows:
            change, values = ("-D", each[1:]) if each[:1] == ("-",) else ("+I", each)
            row = self.jvm.row(values, kinds)
            row.setRowKind(self.jvm.paimon.types.RowKind.fromShortString(change))
            if keys is None:
                writer.write(row)
            else:
                key = keys.trimmedPrimaryKey(row).hashCode()
                writer.write(row, buckets.assign(keys.partition(row), key))

    def _bucket_assigner(self, table: JavaObject) -> tuple[Any, Any]:
        """Return an extractor of keys, and the assigner of their buckets."""
        options = table.options()
        keys = self.jvm.paimon.table.sink.RowPartitionKeyExtractor(table.schema().plain)
        files = table.store().newIndexFileHandler().plain
        rows = Boxed("Long", int(options["dynamic-bucket.target-row-num"]))
        make = self.jvm.constructor("index.HashBucketAssigner")
        snapshots = table.snapshotManager()
        return keys, make(snapshots, "any", files, 1, 1, 0, rows, -1)

    def _commit(self, builder: JavaObject, messages: Any) -> None:
        commit = builder.newCommit()
        commit.commit(messages)
        commit.close()

    @contextmanager
    def _writer(self, writer: JavaObject) -> Iterator[JavaObject]:
        folder = self.jvm.java.lang.System.getProperty("java.io.tmpdir")
        manager = self.jvm.paimon.disk.IOManager.create(folder)
        writer.seen_as("table.sink.TableWrite").withIOManager(manager)
        yield writer
        writer.seen_as("table.sink.TableWrite").close()
        manager.close()

    def _binary_row(self, table: JavaObject, values: Row) -> Any:
        row_type = table.schema().plain.logicalPartitionType()
        serializer = self.jvm.paimon.data.serializer.InternalRowSerializer(row_type)
        return serializer.toBinaryRow(self.jvm.row(values, list(row_type.getFieldTypes())))

    def _texts(
        self, table: JavaObject, builder: JavaObject, splits: Any, kind: str = ""
    ) -> Iterator[str]:
        paimon = self.jvm.paimon
        row_type = table.rowType().plain
        found = paimon.casting.CastExecutors.resolve(row_type, paimon.types.DataTypes.STRING())
        executor = JavaObject(self.jvm, "casting.CastExecutor", found)
        reader = builder.newRead().seen_as("table.source.TableRead").createReader(splits)
        rows = reader.toCloseableIterator().plain
        while rows.hasNext():
            row = rows.next()
            text = executor.cast(row).toString()
            if kind:
                changed = JavaObject(self.jvm, "data.InternalRow", row).getRowKind()
                text = f"{changed.plain.shortString()} {text}"
            yield text
        rows.close()


def _catalog(jvm: PaimonJvm, options: Mapping[str, str]) -> JavaObject:
    wanted = jvm.paimon.options.Options()
    # The catalog that caches tables lacks some methods of the one behind it.
    for key, value in {**options, "cache-enabled": "false"}.items():
        wanted.set(key, value)
    context = jvm.paimon.catalog.CatalogContext.create(wanted)
    found = jvm.paimon.catalog.CatalogFactory.createCatalog(context)
    return JavaObject(jvm, "catalog.Catalog", found)


def _with_options(table: JavaObject, options: Mapping[str, str]) -> JavaObject:
    return table.copy(dict(options)).seen_as(_TABLE) if options else table


def _id(snapshot: Json) -> int:
    return int(snapshot["id"])
