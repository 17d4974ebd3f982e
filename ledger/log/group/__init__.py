"""Group commit: what threads ask of one handle at the same time rides in one commit.

Others may import:

- `riders`: transactions on their way, and the thread that takes all that have gathered.
- `interruptions`: what may interrupt whoever lands his own, and how Ctrl-C waits meanwhile.
- `open_commit`: a commit while transactions join it.
- `winners`: the commits of those that were faster.
"""
