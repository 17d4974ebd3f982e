"""Looking after what was written: what was, is it still what it was, and what may go?

- `older`: older snapshots and schemas of a table, found in its log.
- `past`: what the formats' rules have to know of them.
- `finding`: one thing that does not fit, and what to do about it.
- `subject`: a stream to look at, a table's or the catalog's.
- `chain`: the commits of a stream along their hashes, and which of two is to blame.
- `clocks`: whether a stream's newest commit is ahead of the time.
- `facts`: what events say, against what they may say.
- `repeats`: ids, snapshots' keys and live files that a log names twice.
- `caches`: the caches beside a log, compared with what the log makes them.
- `span`: all that for one span of commits, on its own.
- `workers`: spans of a long log verified by several processes.
- `verify`: a whole stream, span by span, and what is left over beside it.
- `data_files`: the data files that a table names: there, as long, as many rows.
- `births`: every table that the catalog ever named, against the table's own stream.
- `sealing`: the segments that a log lacks.
- `given_back`: commits that a log lacks and that its segments hold.
- `orphans`: what nobody needs any more, and how to remove it beside writers.
"""
