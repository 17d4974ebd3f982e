"""The read side: every view of a ledger is a pure function of a prefix of its events.

Each format's folder is one dialect and knows no other; all depend on `ledger`, never the reverse.

- `dlf`: the objects of the DLF metadata API, and Paimon's REST spelling of the same objects.
- `paimon`: the files of a Paimon table.
- `delta`: the log of a Delta table.
- `importing`: tables that others own, coming into a ledger, as far as that knows no format.
- `statistics`: partition and snapshot statistics at scale, with Spark.
"""
