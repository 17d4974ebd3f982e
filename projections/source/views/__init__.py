"""What can be asked of a ledger as rows, and a span of a table's log as such rows.

No module here knows Spark, and each row is a pure function of the log.

Others may import:
    `view`              the views by name
    `column`            their columns, for Spark and for Arrow alike
    `partition_values`  the column of typed partition values, which one table's views have
    `scan`              the transactions of a span, with the fold beside them
    `reading`           what a task does: a span as Arrow record batches

Inside: `log_rows`, `event_arrays`, `column_rows`, `snapshot_rows` and `file_rows` make the rows of
the views, and `batches` makes Arrow of them.
"""
