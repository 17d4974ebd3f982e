"""Delta: a table's `_delta_log`, one commit a snapshot or schema step, with classic checkpoints.

Others may import:
    `format`       Delta as a format of tables, which the entry point names
    `materialise`  keeping the log on a store
    `command`      its flags on the command line
    `planned`      what a change would write, and who will no longer read it
    `importing`    tables that others made, coming into the ledger

Inside: `project` is one run over the ledger's log, or by `born` of a table that comes from Delta;
`log` is the files of `_delta_log` and `table` what they say of a table; `position` says where it
stands; `rules` says what Delta can hold.

What Delta has no word for:

- Tags. A tag keeps the version of its snapshot, and all since, in the log; `commitInfo` of a
  snapshot's version names its id and the ledger's version.
- Expiry. What only expired snapshots need leaves the log, which then begins with a checkpoint; and
  the checkpoints since no longer name what was removed by then, so that a VACUUM may take it.
"""
