"""Iceberg's manifests and manifest lists: what they say of files, where files stand, and the bytes.

Others may import:
    `facts`             what holds of a table where they are written
    `partition_struct`  a file's partition as Iceberg's struct
    `entry`             one file in a manifest
    `file`              one manifest in a list
    `layout`            which manifests a list names
    `writing`           a run's manifests and lists
    `avro`              the bytes, and their schemas
    `reading`           the files that stand in them
"""
