"""What opening a ledger and its tables takes, and their beginnings and ends.

Others may import:

- `setting`: what a table's handle shares with its ledger, and the shapes of what callers pass in.
- `streams`: which streams a ledger has, where they lie, and what is kept beside a table's.
- `root`: the file that says that a ledger is here.
- `whereabouts`: where a ledger is said to be, and whether that is here.
- `houses`: which rules databases have for their tables.
- `birth`: the seams between the catalog's stream and a table's.
- `given_schema`: a table's schema as people have it at hand.
- `place`: where a table may be that lies outside of its ledger's root.
"""
