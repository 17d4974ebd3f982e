"""Data files: what their footers say, which schema they fit, and which of them are live.

- `facts`: what a Parquet footer says, as values.
- `footers`: reading footers, many at a time, and nothing but footers.
- `bounds`: least and greatest values as Iceberg's single-value bytes.
- `like`: the schema that existing files suggest.
- `hive`: partition values from `key=value` paths and back.
- `partition_text`: one partition value from its text in a path.
- `single_result`: what a footer says of a partition field.
- `partition_value`: one partition value of a file to register, from its path or its rows.
- `match`: the schema whose names a file uses.
- `expand`: which files a path, folder or glob means.
- `register`: all of these together, for `table.add_files`.
- `readable`: whether a file's values can be read as a column's type.
- `partition_check`: a partition column in the file agrees with the path.
- `change_table`: file changes as Arrow tables and Parquet bytes.
- `change_file`: lists of file changes too long for a commit, beside the log.
- `runs`: the net changes of an interval of commits, kept as Parquet; a cache.
- `live`: which files are live after a version.
- `snapshot_plan`: from what a user asks of files to the change that says so, looked up.
"""
