"""Which files a filter has to read: hidden partitioning and column bounds.

- `expression`: filters as values: predicates joined by and, or, not.
- `literal`: a filter's values in the form of the column that they are compared with.
- `filter`: filters from pyarrow's and pandas' lists, and from SQL.
- `projection`: what a filter says of partition values.
- `bound_value`: single values as bytes.
- `verdict`: whether a predicate holds for a value.
- `metrics`: whether a predicate holds for a file's rows, by its counts and bounds.
- `spec_plan`: one filter under one spec, and why a file is not read.
- `plan`: files to read, and why the others are not.
- `table_plan`: the same over a table's live files as Arrow tables, decoding only those kept.

Source: the Iceberg specification, scan planning.
"""
