"""Iceberg: a table's metadata files, manifest lists and manifests, of format versions 1 to 3.

`materialise` keeps them on a store, `metadata` is the pure model of a metadata file, and `planned`
says what a change would write.
"""
