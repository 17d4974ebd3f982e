"""Commands that look at what is there, and change nothing.

- `show`: `ls` and `show`, what there is and a table at any instant.
- `head`: some rows of it.
- `log`: who changed what, when, why and how.
- `snapshots`: a table's snapshots.
- `diff`: `diff` and `blame`, what differs and who made it so.
- `replay`: what happened, one commit after the other; `report`: a page for an audit.
"""
