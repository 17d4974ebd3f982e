"""Whether a log, and what derives from it, is what was written.

- `finding`: one thing that does not fit, and what to do about it.
- `subject`: a stream to look at, a table's or the catalog's, and its commits in columns.
- `spans`: its commits, span by span, in this process or in several.
- `caches`: the caches beside it, compared with what the log makes them.
- `verify`: a whole stream, span by span, and what is left over beside it.
- `clocks`: whether a stream's newest commit is ahead of the time.
- `data_files`: the data files that a table names: there, as long, as many rows.
- `outside`: what lines say outside of themselves of who and why.
- `births`: every table that the catalog ever named, against the table's own stream.
- `given_back`: commits that are gone from a log, from its segments.
"""
