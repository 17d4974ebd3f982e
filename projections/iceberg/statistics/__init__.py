"""What Iceberg brings to the statistics: its engines' manifests, and files that its readers find.

Others may import:
    `engine_manifests`  what snapshots list, as the statistics ask for it
    `publisher`         which statistics its readers can find, and when

Inside: `entries` reads manifest lists and manifests as rows; `partitions` publishes statistics by
partition, which `partition_file` says; `distinct` those of columns, in files of `puffin`.
"""
