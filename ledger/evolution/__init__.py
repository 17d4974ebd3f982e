"""From what is asked to what is a fact, and from facts to state. Pure: no I/O, no clock.

Two layers. DECIDE knows all rules of the formats; the writer runs it once. FOLD applies facts
mechanically and strictly; every replay runs it, and its rules never change.

Schemas, decide:
    `evolve`, `creation`         the two pure entry points: a next schema, a first schema
    `decide_schema`              a batch of changes to facts; `decide_add`, `decide_columns`,
                                 `decide_types`, `decide_options` hold the rules a change,
                                 `following` decides again on a newer schema (by `anchor`s),
                                 `renames` and `keys` finish a batch
    `draft`, `places`, `refusals`
                                 what the rules look at and find there, and how they say no
    `option_guards`, `column_guards`, `directives`, `table_options`
                                 rules as data: locked options, locked columns, comment directives
    `validation`                 what holds for a schema as a whole; one file a theme beside it
    `change_json`, `schema_json` changes and first schemas from and to the dialects' JSON

Schemas, fold:
    `schema_builder`             facts in, `Schema` out; `column_store` holds the columns,
                                 `nested_edits`, `struct_edits` and `schema_paths` go inside them

Layouts (partition specs and sort orders):
    `decide_layout`              changes to facts; `spec_draft` holds Iceberg's rules of a spec,
                                 `sources` finds columns and follows them
    `layout_fold`, `specs`       facts in, specs and orders out
    `partition_filter`           partition values, asked of files of any spec
    `layout_json`                changes from JSON

Tables and catalogs (`state`, `table_builder`, `cells`, `table_intent`, `catalog_*` and others):
see the modules.
"""
