"""Commands that look after a ledger.

- `ledgers`: `init` and `doctor`, a ledger as a whole.
- `verify`: whether everything stands as it was written.
- `maintain`: what nobody needs any more goes, what is missing is sealed.
- `erase`: what is kept of a person goes.
- `follow`: projected files go on with commits.
- `export`: a ledger as lines.
- `imports`: what exists elsewhere comes in; a kind a command, others are found by entry points.
- `promote`: a table that others owned becomes the ledger's own;
- `serve_table`: engines commit a table's data, or the library does again.
- `move`: what happened to a ledger that was found elsewhere.
- `correct_clock`: what a clock that was ahead left.
"""
