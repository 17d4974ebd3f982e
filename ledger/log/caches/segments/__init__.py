"""Sealed runs of commits as Parquet: a cache that makes reading a long log cheap.

Others may import:

- `file`: one segment, its lines as rows and columns of what they say.
- `cache`: those of one stream, and the commits of one that is filling up.
"""
