"""What a writer wants of a table, decided on whatever state it meets.

Others may import:
    `intent`         a transaction on its way into a table's log
    `born`           what a table has besides that was born in Iceberg, and how it folds
    `born_delta`     the same of one that was born in Delta
    `born_paimon`    the same of one that was born in Paimon
    `born_operations` the rows of what happens to such tables
    `branch_fold`    how branches beside main fold
    `changes`        what can be asked beside changes of the schema and the layout
    `decision`       what changes of schema and layout come to, before its formats are asked
    `operations`     the rows of what can be asked of snapshots, tags and statistics
    `snapshots`      the rules of snapshots, tags, expiry and statistics
    `snapshot_fold`  how a snapshot's fact becomes what readers see
    `touched`        what the commits of others did, for all who ask

Inside: `branches` has the rules of branches beside main; `cells` and `conflicts` find what both
wanted, and tell it.
"""
