"""Group commit: concurrent requests on one handle share one commit.

Others may import:

- `commit_queue`: pending commits, and the committer thread that takes all that are queued.
- `open_commit`: a commit while transactions join it.
- `winners`: commits that other writers appended first.
"""
