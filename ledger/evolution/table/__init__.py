"""What a writer wants of a table, decided on whatever state it meets.

Others may import:
    `intent`         a transaction on its way into a table's log
    `branch_fold`    how branches beside main fold
    `changes`        what can be asked beside changes of the schema and the layout
    `conflicts`      what the commits of others did, and what both wanted
    `decision`       what changes of schema and layout come to, before its formats are asked
    `origin`         where a table comes from, and the questions whose answers depend on it
    `owner`          the party that commits data to a table
    `operations`     the rows of what can be asked of snapshots, tags and statistics
    `snapshots`      the rules of snapshots, tags, expiry and statistics
    `snapshot_fold`  how a snapshot's fact becomes what readers see

Inside: `branches` has the rules of branches beside main.
"""
