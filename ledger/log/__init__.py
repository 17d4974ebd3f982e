"""The log: the only code that moves a stream forward, the only one to know codec and stores.

- `layout`: which key holds what.
- `codec`: commits to bytes and back; what cannot be read says whether to upgrade or to stop.
- `segment`, `segments`, `lines`: sealed runs of commits as Parquet; a cache.
- `replay`: reading commits in order along the hash chain.
- `checkpoint`: folded state saved now and then, in a folder of its fold version; a cache.
- `key_index`: where a caller-given commit id or a file path was last named; a cache.
- `request`: who appends, why, and under which id.
- `gate`: which format a ledger takes.
- `clock`: the time of a commit, and whether this machine may give it.
- `settle`: creating a file and knowing what came of it.
- `entry`, `waiting`, `open_commit`, `winners`: what threads ask for at once, in one commit.
- `append`: the one retry loop.
- `stream_log`: a stream opened, with its head in memory.
"""
