"""Data files that come: what their footers say, and which schema and partition they fit.

Others may import:

- `facts`: what a Parquet footer says, as values.
- `footers`: reading footers, many at a time, and nothing but footers.
- `bounds`: least and greatest values as Iceberg's single-value bytes.
- `metrics_modes`: which of these facts a table keeps, by its options.
- `hive`: partition values from `key=value` paths and back.
- `partition_text`: one partition value from its text in a path.
- `expand`: which files a path, folder or glob means.
- `like`: a schema like that of existing files.
- `register`: all of these together, for `table.add_files`.
- `match`: the schema whose names a file uses, and whether its values can be read as a type.
- `partition_value`: one partition value of a file to register, from its path or its rows.
"""
