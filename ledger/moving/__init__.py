"""Ledgers on their way: out of a store as one stream of lines, and back into another.

- `export`: writes a ledger, some of its tables, or one up to a version, as lines.
- `bring`: writes such lines into a store, where they are the same ledger, or a copy of it.
- `replaying`: a table's commits up to a version, into whatever is wanted.
- `places`: where a ledger is, what can be found out of it, and what a move takes.
- `ties`: what of a table names files by whole URLs, and so is tied to a place.
- `lines`: what a line may be; `ledger/FORMAT.md` describes them for other programs.
"""
