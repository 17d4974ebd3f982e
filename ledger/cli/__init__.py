"""The `lakeledger` command.

- `app`: the command line as a whole: commands, their order, errors to exit codes.
- `commands`: the commands, in rooms by what people do; imported when they are asked for.
- `quickstart`: the story on real data.
- `options`: what many commands take: which ledger, which instant, who commits and why.
- `exits`: exit codes, and errors as one line or one JSON object.
- `screen`: results on stdout as tables or one JSON document, everything else on stderr.
- `stopping`: how a command that goes on for ever is ended.
- `paths`, `changes`: what users write for columns and changes.
- `phrases`: what the log says, in words, and what every writing command prints.
- `families`: commands, and families of them such as `view create`.
- `completion`: what a shell is told when somebody presses Tab.
- `plugins`: what the projections bring; the only way to them, since `ledger` never imports them.
- `version`: which lakeledger this is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The command line without the program's name; the process's own when None.

    Returns:
        The exit code: 0 when done, else the reason (see `exits`).
    """
    line = sys.argv[1:] if argv is None else list(argv)
    # Whoever asks for the version only, or interrupts early, meets none of the libraries.
    try:
        if line == ["--version"]:
            from ledger.cli.version import version

            sys.stdout.write(f"{version()}\n")
            return 0
        from ledger.cli.app import run

        return run(line)
    except KeyboardInterrupt:
        from ledger.cli.exits import interrupted

        return interrupted(line)


__all__ = ["main"]
