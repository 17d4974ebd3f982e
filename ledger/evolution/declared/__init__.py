"""The formats that a table declares, and what they are asked when a change is decided.

Others may import:
    `rules`     what a table's options declare
    `format`    FormatRules, the protocol of what a format is asked, and what the questions carry
    `asking`    the asking, and its refusals
    `commit_rules`
                what a table asks of whoever changes it: messages, names, types, owners, freezes
    `personal`  which columns are personal
    `names`     what the names of older schemas stand for
"""
