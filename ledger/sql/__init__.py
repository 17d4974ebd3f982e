"""`ALTER TABLE` as Spark and Iceberg write it, as changes of a table.

- `cursor`: the words of a statement, one after the other, and errors that say where.
- `columns`, `layout`: the clauses of columns and of all else.
- `statement`: whole statements; `conditional`: `IF EXISTS` and its kind, decided on a state.

The words come from sqlglot's tokenizer and the types from its parser; it reads no more than the
beginning of most clauses, which belong to Iceberg's extension of Spark.
"""
