"""The `lakeledger` command.

- `app`: the command line as a whole: commands, their order, errors to exit codes.
- `options`: what many commands take: which ledger, which instant, who commits and why.
- `exits`: exit codes.
- `screen`: results on stdout as tables or one JSON document, everything else on stderr.
- `column_text`, `type_text`, `paths`, `changes`: what users write for columns and changes.
- `phrases`: what the log says, in words.
- `families`: commands of two words, such as `view create`.
- `plugins`: what the projections bring; the only way to them, since `ledger` never imports them.
- `commands`: one module a command.
- `quickstart`: the story on real data.
"""

from __future__ import annotations

from ledger.cli.app import main

__all__ = ["main"]
