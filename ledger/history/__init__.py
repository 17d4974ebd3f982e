"""What was, whether it is still what was written, and what may go.

- `older`: older snapshots and schemas of a table, found in its log.
- `past`: what the formats' rules have to know of them.
- `verifying`: whether a log, and what derives from it, is what was written.
- `sealing`: the segments that a log lacks.
- `erasing`: what is kept of a person outside of the lines goes.
- `erasing_columns`: which values of a personal column that is about.
- `value_matcher`: whether a stored value is one that is sought, under any type of the column.
- `value_casts`: values of one type as another.
- `orphans`: what nobody needs any more, and how to remove it beside writers.
"""
