"""Projected files that go on with their table's commits.

Others may import:

- `files`: leaving word of a commit, bringing files on, waiting for them, how far behind they are.

Inside: `pace` says when, so that the commits of the same process hardly notice.
"""
