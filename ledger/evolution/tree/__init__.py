"""Columns as a tree: where a path leads, and edits of one struct or of what is nested in it.

Others may import:
    `paths`      column paths, and the place that one leads to
    `structs`    edits of one struct's members
    `nested`     edits below a column, as facts ask for them
    `store`      the columns of a schema under change
    `past`       the columns that a table had, for those that come back
"""
