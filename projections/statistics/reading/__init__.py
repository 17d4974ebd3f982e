"""A table's file changes as Arrow rows, from the log and from its engine's manifests.

Others may import:
    `entries`            the rows of some commits
    `opening`            where they begin if older manifest lists are gone
    `snapshot_contents`  which manifests say what a snapshot did
    `manifest_part`      what is to be read of one manifest
    `part_reading`       reads such parts, in whatever process
    `engine_files`       finds an engine's files on the store
    `engine_manifests`   what formats tell of their engines' manifests
"""
