"""What Delta can hold: asked when a change of a table that declares it is decided.

Others may import:
    `answers`    DeltaRules, all of it
    `schemas`    what a schema may be, which a plan tells

Inside: `schemas` says what a schema and a layout may be and what may become of them, `files` what a
file may be, `held` by what names files hold columns.
"""
