"""The read side: every view of a ledger is a pure function of a prefix of its events.

Each folder is one dialect and knows no other; all of them depend on `ledger`, never the reverse.

- `dlf`: the objects of the DLF metadata API, and Paimon's REST spelling of the same objects.
- `paimon`: the files of a Paimon table.
- `delta`: the log of a Delta table.
- `statistics`: partition and snapshot statistics at scale, with Spark.
"""
