"""Views in the catalog: what is asked of them, cell by cell, and how they fold.

Others may import:

- `decisions`: what requests about views become.
- `cells`: between a record and a value, and what changes set.
- `fold`: what changes make of a view; frozen.
"""
