"""Files of foreign writers, read within limits: a few bytes can declare or unpack to gigabytes.

Others may import:
    `parquet`  Parquet files: their footers, rows, and rows in batches

Inside: `thrift` reads what has to be checked before Arrow allocates memory for it.
"""
