"""The caches beside a log, compared with what the log makes them.

Others may import:

- `compared`: checkpoints, segments, indexes and runs.
- `filters`: the filters of keys, which say themselves how far they go.
- `names`: what the names of older schemas meant, for files without field ids.
"""
