"""What becomes of snapshots in a run: those that come, whose files they list, and those that go.

Others may import:
    `adding`   a snapshot that comes
    `adders`   which snapshot added a file
    `garbage`  what only expired ones name
    `lines`    those of branches
"""
