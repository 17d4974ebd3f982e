"""From what is asked to what is a fact, and from facts to state. Pure: no I/O, no clock.

Two layers. DECIDE knows all rules of the formats; the writer runs it once. FOLD applies facts
mechanically and strictly; every replay runs it, and its rules never change.

Decide:
    `operation`, `operations`    one row a kind of change: its JSON, the columns that it names, how
                                 it is decided, its cells, its sentence for people
    `bounds`                     what a number from outside may be, and what may stand in a log
    `in_logs`                    what events and files say, against that; of what comes in, too
    `columns`, `options`, `layout`, `table`
                                 the rooms of the rows and their rules, by noun
    `evolve`                     a next schema, as one pure function
    `validation`                 what holds for a schema as a whole
    `declared`                   which formats a table declares, and what those are asked
    `update`                     Iceberg's batches, compiled to changes
    `wire`                       changes from and to JSON
    `file_facts`                 what a file that comes may say of its order, rows and deletes
    `refusals`                   the four plain ways to say no

Fold:
    `fold`, `tree`               facts in; a schema, a table's state and its checkpoint out
    `state`                      TableState
    `stream`                     what the log asks of a kind of stream

`catalog` has the same of the catalog; `decide_clock` is of both. Each room's docstring says what
others may import.
"""
