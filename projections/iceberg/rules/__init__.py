"""What Iceberg can hold: asked when a change of a table that declares it is decided.

Others may import:
    `answers`    IcebergRules, all of it

Inside: `schemas` says what a schema may be and what may become of it, `names` what names of files
without field ids may mean, `files` what a file may be.
"""
