"""`ALTER TABLE` as Spark and Iceberg write it, as changes of a table.

- `cursor`: the words of a statement, one after the other, and errors that say where.
- `types`: Spark's data types.
- `columns`, `layout`, `properties`, `tags`: the clauses, by noun.
- `statement`: whole statements; `conditional`: `IF EXISTS` and its kind, decided on a state.

The words come from sqlglot's tokenizer and the types from its parser; it reads no more than the
beginning of most clauses, which belong to Iceberg's extension of Spark.
"""
