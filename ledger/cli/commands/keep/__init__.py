"""Commands that look after a ledger.

- `ledgers`: `init`, `doctor` and `upgrade`, a ledger as a whole.
- `verify`: whether everything stands as it was written.
- `maintain`: what nobody needs any more goes, what is missing is sealed.
- `correct_clock`: what a clock that was ahead left.
"""
