"""Facts in, a table's state out. Frozen: how written events fold never changes.

Others may import:
    `table_builder`     a table's commits in, its state out
    `schema_builder`    facts about a schema in, `Schema` out
    `table_record`      a table's state in checkpoints; TableStream, which the log folds tables with
    `schema_record`     a schema in records and events
    `outside`           what lines do not hold of who and why
    `clock`             how times fold, in a table's stream and the catalog's
"""
