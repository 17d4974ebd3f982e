"""Which files a filter has to read: hidden partitioning and column bounds.

- `expression`: filters as values: predicates joined by and, or, not.
- `literal`: a filter's values in the form of the column that they are compared with.
- `columns`: the columns of a schema by their dotted names.
- `filter`: filters from pyarrow's and pandas' lists.
- `sql_filter`: filters from SQL.
- `partition_column`: a partition field as a column that predicates can name.
- `projection`: what a filter says of partition values.
- `bound_value`: single values as bytes.
- `verdict`: whether a predicate holds for a value.
- `metrics`: whether a predicate holds for a file's rows, by its counts and bounds.
- `reason`: why a file is not read.
- `spec_plan`: one filter under one spec.
- `plan`: files to read, and why the others are not.
- `change_tables`: a table's live files as Arrow tables.
- `bound_columns`: what the bounds of whole numbers leave out, a column at a time.
- `table_plan`: plans over those, which decode only the files that are kept.

Source: the Iceberg specification, scan planning.
"""
