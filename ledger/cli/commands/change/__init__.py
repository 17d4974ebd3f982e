"""Commands that change databases, tables and views.

- `tables`: `create`, `rename` and `drop`.
- `alter`: `alter` and `sql`; `plan`: what `alter` would do.
- `files`: `add-files`, `overwrite` and `delete-files`.
- `snapshots`: `tag`, `rollback` and `expire`; `branch`: lines of snapshots beside main.
- `view`: all of views.
- `undo`: `undo` and `revert`, changes taken back.
"""
