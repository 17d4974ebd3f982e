"""What a log is read faster by: files made of its commits alone, which may always be deleted.

Others may import:

- `checkpoint`: folded state saved now and then, in a folder of its fold version.
- `segments`: sealed runs of commits as Parquet.
- `filters`: what was surely never named.
- `lookup`: where a commit id or a file path was last named.
"""
