"""Paimon's manifests and manifest lists: what they say of files, where files stand, and the bytes.

Others may import:
    `records`         what stands in a manifest and in a list
    `entries`         a file change as an entry, and back
    `avro`            the bytes
    `tiers`           which manifests a list names
    `writing`         a run's manifests and lists
    `unlisted_files`  files that only an engine's manifests list

Inside: `stats` are the bounds and counts of an entry.
"""
