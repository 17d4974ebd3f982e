"""Looking after what was written: is it still what it was, and what may go?

- `finding`: one thing that does not fit, and what to do about it.
- `subject`: a stream to look at, a table's or the catalog's.
- `chain`: the commits of a stream along their hashes, and which of two is to blame.
- `shadow`: the caches as they should be, made by the code that makes them.
- `verify`: a whole stream: chain, encodings, fold, side files, caches.
- `births`: every table that the catalog ever named, against the table's own stream.
- `sealing`: the segments that a log lacks.
- `orphans`: what nobody needs any more, and how to remove it beside writers.
"""
