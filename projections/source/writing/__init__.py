"""The batches of a streaming query as snapshots of a table, each once.

Others may import:
    `sink`  the function for `foreachBatch`, and its steps

Inside: `batch_files` writes a task's rows as Parquet files of the table, and `zones` casts moments
to its kinds before.
"""
