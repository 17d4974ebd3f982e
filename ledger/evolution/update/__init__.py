"""Iceberg's `update_schema`: resolved on the schema that it began with, compiled to changes.

Others may import:
    `update`       the update itself

Inside: `pending` is what it wants so far, `find` and `names` what a call is about, `union` what
another schema has more, `compile` the changes that come of it.
"""
