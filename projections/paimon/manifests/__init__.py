"""Paimon's manifests and manifest lists: what they say of files, where files stand, and the bytes.

Others may import:
    `records`         what stands in a manifest and in a list
    `entries`         a file change as an entry with its bounds and counts, and back
    `avro`            the bytes
    `tiers`           which manifests a list names
    `writing`         a run's manifests and lists
"""
