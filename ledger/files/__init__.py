"""Data files: what their footers say, which schema they fit, and which of them are live.

- `registering`: files that come: their footers, and which schema and partition they fit.
- `change_table`: file changes as Arrow tables and Parquet bytes.
- `change_file`: lists of file changes too long for a commit, beside the log.
- `deletes`: files of position deletes, and which data files they name.
- `runs`: the net changes of an interval of commits, kept as Parquet; a cache.
- `live`: which files are live after a version.
- `live_tables`: what is live, or came and went, as Arrow tables of some of their columns.
- `taken_over`: what a source says of its files, as lines may hold it where its table marks columns.
- `snapshot_plan`: from what a user asks of files to the change that says so, looked up.
"""
