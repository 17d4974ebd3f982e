"""What holds for a schema as a whole, by Paimon's rules: one table of rows.

Others may import:
    `whole`        every rule, in Paimon's order

Inside: `rows` is how a rule is written down, and the conditions that rules share; `candidate` is
what they look at. `merging`, `scan`, `files` and `indexes` have what takes an algorithm.
"""
