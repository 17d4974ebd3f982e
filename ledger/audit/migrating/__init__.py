"""From one state of a table to another: the changes that lead there, tried out, or taken back.

Others may import:

- `migration`: the changes that `alter` takes.
- `trial`: what changes would make of a state.
- `undoing`: one change taken back, keeping what came later.

Inside: `aligning`, `columns` and `layout` plan a migration.
"""
