"""Partition specs and sort orders.

Others may import:
    `operations`        what can be asked of a layout: the rows, and how they are decided
    `intent`            a transaction's changes of layout, decided on whatever they meet
    `creation`          a table's first spec and order
    `fold`              specs and orders while facts are folded in, from and to their records
    `sources`           the columns that a layout is made of, followed by id
    `partition_filter`  partition values, asked of files of any spec

Inside: `spec_draft` holds Iceberg's rules.
"""
