"""Projected files that are brought up to date with their table's commits.

Others may import:

- `files`: requests a step after a commit, waits for steps, reads how far files are behind.
"""
