"""Whether a log, and what derives from it, is what was written.

- `finding`: one thing that does not fit, and what to do about it.
- `subject`: a stream to look at, a table's or the catalog's, and its commits in columns.
- `chain`: the commits of a stream along their hashes, and which of two is to blame.
- `clocks`: whether a stream's newest commit is ahead of the time.
- `facts`: what events say, against what they may say.
- `repeats`: ids, snapshots' keys and live files that a log names twice.
- `caches`: the caches beside a log, compared with what the log makes them.
- `filters`: the filters of keys, which say themselves how far they go.
- `names`: what the names of older schemas meant, for files without field ids.
- `span`: all that for one span of commits, on its own.
- `workers`: spans of a long log verified by several processes.
- `verify`: a whole stream, span by span, and what is left over beside it.
- `data_files`: the data files that a table names: there, as long, as many rows.
- `outside`: what lines say outside of themselves of who and why.
- `births`: every table that the catalog ever named, against the table's own stream.
- `given_back`: commits that are gone from a log, from its segments.
"""
