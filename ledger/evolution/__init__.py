"""From what is asked to what is a fact, and from facts to state. Pure: no I/O, no clock.

Two layers. DECIDE knows all rules of the formats; the writer runs it once. FOLD applies facts
mechanically and strictly; every replay runs it, and its rules never change.

Decide:
    `operation`, `operations`    one row a kind of change: its JSON, the columns that it names, how
                                 it is decided, its cells, its sentence for people
    `bounds`                     what a number from outside may be
    `columns`, `options`, `layout`, `table`
                                 the rooms of the rows and their rules, by noun
    `evolve`                     a next schema, as one pure function
    `validation`                 what holds for a schema as a whole
    `declared`                   which formats a table declares, and what those are asked
    `update`                     Iceberg's batches, compiled to changes
    `wire`                       changes from and to JSON
    `refusals`                   the four plain ways to say no

Fold:
    `schema_builder`, `tree`     facts in, `Schema` out
    `table_builder`, `state`, `table_record`
                                 a table's commits in, its state and its checkpoint out
    `stream`                     what the log asks of a kind of stream

The catalog's counterparts begin with `catalog_`: `catalog_state`, `catalog_builder`,
`catalog_record`, `catalog_birth`, `catalog_request`, `catalog_decide`, `catalog_location`; both
have `decide_clock`. Each room's docstring says what others may import.
"""
