"""The log: the only code that moves a stream forward, the only one to know codec and stores.

- `layout`: which key holds what.
- `codec`: commits to bytes and back; what cannot be read says whether to upgrade or to stop.
- `segment`, `segments`, `lines`: sealed runs of commits as Parquet; a cache.
- `replay`: reading commits in order along the hash chain.
- `checkpoint`: folded state saved now and then, in a folder of its fold version; a cache.
- `lookup`: where a commit id or a file path was last named; its files are a cache.
- `request`: who appends, why, under which id and onto what.
- `gate`: which format a ledger takes.
- `clock`: the time of a commit, and whether this machine may give it.
- `landing`: what came of a create, and whose a commit is: the file to read when somebody asks
  whether his commit landed.
- `worker`, `group`: what threads ask for at once, landed by a thread of the handle's own.
- `open_commit`, `winners`: a commit while transactions join it; those that were faster.
- `append`: the one retry loop.
- `stream_log`: a stream opened, with its head in memory, and what has to be kept beside it.
"""
