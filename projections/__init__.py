"""The read side: every view of a ledger is a pure function of a prefix of its events.

Each format's folder is one dialect and knows no other; all depend on `ledger`, never the reverse.

- `dlf`: the objects of the DLF metadata API, and Paimon's REST spelling of the same objects.
- `paimon`: the files of a Paimon table.
- `iceberg`: the metadata files and manifests of an Iceberg table.
- `delta`: the log of a Delta table.
- `source`: the log as Spark DataFrames.
- `statistics`: partition and snapshot statistics at scale, with Spark.

What the formats share, and what knows none of them:

- `lazy_format`: a format's parts, each imported when it is asked for.
- `materialising`: how a format's files are kept beside a table's log; `position_file`: how far they
  have come; `outputs`: where they go; `leaving`: how long those stay that nothing names any more.
- `manifest_files`: what all manifests share; `partition_text`: values of partitions as text.
- `importing`: tables that others own, coming into a ledger.
- `command`: `lakeledger project`, one over all formats; `commands`: which commands are found here.
"""
