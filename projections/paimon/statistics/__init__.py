"""What Paimon brings to the statistics: its engines' manifests, and what its readers find.

Others may import:
    `engine_manifests`  what snapshots list, as the statistics ask for it
    `publisher`         which statistics its readers can find, and when

Inside: `entries` reads manifest lists and manifests as rows; `analysis` commits an ANALYZE snapshot
that names a file of statistics.
"""
