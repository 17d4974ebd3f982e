"""What Paimon can hold: asked when a change of a table that declares it is decided.

What a change means is Paimon's, too, and stands in `ledger.evolution`.

Others may import:
    `answers`    PaimonRules, all of it

Inside: `schemas` says what a schema may be and what may become of it, `files` what a file may be.
"""
