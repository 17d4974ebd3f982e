"""The log: the only code that moves a stream forward, the only one to know codec and stores.

- `layout`: which key holds what.
- `codec`: commits to bytes and back, and which format a ledger takes; what cannot be read says
  whether to upgrade or to stop.
- `replay`: reading commits in order along the hash chain.
- `caches`: checkpoints, sealed segments, and where what was last named: what may be deleted.
- `travel`: the state at a version or a moment, from the nearest checkpoint.
- `request`: who appends, why, under which id and onto what.
- `outside`: who, why, and values of personal columns, where lines do not hold them, so that they
  can be erased.
- `clock`: the time of a commit, and whether this machine may give it.
- `landing`: what came of a create, whose a commit is, and what people are told of it: the file to
  read when somebody asks whether his commit landed.
- `patience`: how long whoever waits goes on.
- `append`: the one retry loop.
- `group`: what threads ask for at once, in one commit; `worker`: a thread of a handle's own.
- `stream_log`: a stream opened, with its head in memory, and what has to be kept beside it.
"""
