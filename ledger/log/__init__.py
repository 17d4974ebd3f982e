"""The log: the only code that appends commits."""
