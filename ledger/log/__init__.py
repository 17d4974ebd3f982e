"""The log: the only code that moves a stream forward, the only one to know codec and stores.

- `layout`: which key holds what.
- `codec`: commits to bytes and back, and which format a ledger takes; what cannot be read says
  whether to upgrade or to stop.
- `replay`: reading commits in order along the hash chain.
- `segments`: sealed runs of commits as Parquet; a cache.
- `checkpoint`: folded state saved now and then, in a folder of its fold version; a cache.
- `filters`: what was surely never named; their files are a cache, too.
- `lookup`: where a commit id or a file path was last named; its files are a cache.
- `travel`: the state at a version or a moment, from the nearest checkpoint.
- `request`: who appends, why, under which id and onto what.
- `outside`: who and why where lines do not hold it, so that it can be erased.
- `column_values`: values of personal columns where lines do not hold them, likewise.
- `erasable`: files that something can be taken out of for ever.
- `clock`: the time of a commit, and whether this machine may give it.
- `landing`: what came of a create, and whose a commit is: the file to read when somebody asks
  whether his commit landed.
- `append`: the one retry loop.
- `group`: what threads ask for at once, in one commit; `worker`: a thread of a handle's own.
- `stream_log`: a stream opened, with its head in memory, and what has to be kept beside it.
"""
