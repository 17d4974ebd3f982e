"""Delta: a table's `_delta_log`, one commit a snapshot or schema step, with classic checkpoints.

`materialise` keeps it on a store, `rules` says what Delta can hold, `planned` what a change would
write and who will no longer read it, and `format` and `command` are what entry points name.

Inside: `project` goes over the ledger's log by `delta_log` (files and checkpoints), `table_fold`
(protocol and metadata), `table_files` (add and remove), `commits` (who and why) and `versions`;
`types`, `mapping` and `values` say how Delta writes types, names and values.

What Delta has no word for:

- Tags. A tag keeps the version of its snapshot, and all since, in the log; `commitInfo` of a
  snapshot's version names its id and the ledger's version.
- Expiry. What only expired snapshots need leaves the log, which then begins with a checkpoint; and
  the checkpoints since no longer name what was removed by then, so that a VACUUM may take it.
"""
