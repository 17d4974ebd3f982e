"""Delta: a table's `_delta_log`, with classic checkpoints."""
