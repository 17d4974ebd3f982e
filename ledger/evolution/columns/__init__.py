"""What can be asked of columns, and what a batch of it means.

Others may import:
    `batch`        a batch of SchemaChanges, decided on a schema
    `creation`     a table's first schema
    `operations`   the rows of what can be asked of columns
    `draft`        a decision in the making, and what each change was about
    `following`    a change in the names of a newer schema
    `directives`   comments that Paimon takes as orders
    `identifiers`  Iceberg's identifier fields
    `iceberg_ids`  ids inside new types, as Paimon or Iceberg counts

Inside: `adding`, `editing` and `undropping` hold the rules a change.
"""
