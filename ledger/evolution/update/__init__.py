"""Iceberg's `update_schema`: resolved on the schema that it began with, compiled to changes.

Others may import:
    `update`       the update itself; all else is inside
"""
