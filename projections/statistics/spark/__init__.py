"""Spark's executors keep statistics as this process does, and give them as DataFrames.

Others may import:
    `engine`     which engine computes, this process or Spark, and why
    `session`    the caller's session, or one of ours
    `java`       whether there is a Java to start
    `executors`  one table, kept by executors
    `many`       many tables, side by side
    `analyze`    distinct values of columns, by reading the data
    `job`        statistics as DataFrames
    `reader`     from the log to deltas
    `source`     where executors read a table
    `busiest`    what the quickstart shows

Inside: `transforms` goes on from deltas, with the definition's `columns` as Spark's.
"""
