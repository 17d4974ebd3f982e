"""Overview that `lakeledger --help` prints.

It does without cyclopts, whose import takes longer than printing the overview.
"""

from __future__ import annotations

from textwrap import fill, wrap
from typing import Final

from rich.panel import Panel
from rich.text import Text

from ledger.cli.commands import SUMMARIES
from ledger.cli.exits import MEANINGS
from ledger.cli.families import command_summaries
from ledger.cli.output import result_console

PLUGINS: Final = "Project and serve"
"""Group of the commands that installed packages add."""

FAMILIES: Final = {
    "Get started": ("quickstart", "init", "create", "import"),
    "Inspect tables": ("status", "ls", "show", "head", "snapshots"),
    "Audit history": ("log", "diff", "blame", "replay", "report"),
    "Change tables": (
        "alter",
        "plan",
        "sql",
        "rename",
        "drop",
        "undrop",
        "view",
        "undo",
        "restore",
    ),
    "Change data and refs": (
        "add-files",
        "append",
        "overwrite",
        "delete-files",
        "tag",
        "branch",
        "rollback",
        "expire",
    ),
    PLUGINS: ("follow", "promote", "serve-table"),
    "Administer a ledger": (
        "verify",
        "maintain",
        "doctor",
        "move",
        "export",
        "erase",
        "correct-clock",
    ),
}
"""Commands grouped by task, in a typical order of use."""

_WITHOUT_COMMAND: Final = {
    "--help": "Show this overview, or the help and examples of a command.",
    "--version": "Show the version of lakeledger.",
    "--install-completion [SHELL]": "Install shell completion for commands, options and names.",
}

_WHAT: Final = "One append-only ledger of table changes; every format's metadata is a projection."

_MORE: Final = (
    "Root of the ledger: LAKELEDGER_URL or --ledger; a folder, s3://..., gs://... or abfs://...",
    "Without either it is the ledger that the current folder is in, or the default profile's.",
    "With --output json, errors are one JSON object on stderr: error, kind, message, exitCode.",
)


def print_overview() -> None:
    """Print the overview at the width of the terminal."""
    console = result_console(width=None)
    console.print(f"Usage: lakeledger COMMAND\n\n{_wrap_text(_WHAT, console.width)}\n")
    # A panel has a line and a space on either side.
    console.print(Panel(_command_list(console.width - 4), title="Commands", title_align="left"))
    console.print("\nExit codes:\n")
    for code, meaning in MEANINGS.items():
        console.print(_wrap_text(f"- {code}: {meaning}", console.width))
    console.print()
    for paragraph in _MORE:
        console.print(f"{_wrap_text(paragraph, console.width)}\n")
    console.print("Example:\n\n    lakeledger quickstart")


def _wrap_text(text: str, width: int) -> str:
    return fill(text, width, break_on_hyphens=False)


def families() -> dict[str, dict[str, str]]:
    """Return the summaries of all commands by name, grouped by task."""
    summaries = command_summaries()
    listed = {
        family: {name: SUMMARIES[name] for name in names} for family, names in FAMILIES.items()
    }
    listed[PLUGINS] |= summaries
    return listed


def _command_list(width: int) -> Text:
    """Return the list of commands with their summaries, wrapped to a width."""
    listed = families()
    longest = max(len(name) for names in listed.values() for name in names)
    indent = min(longest + 2, width // 3)
    text = Text()
    for heading, rows in {**listed, "Without a command": _WITHOUT_COMMAND}.items():
        text.append(f"{heading}\n", style="bold")
        for name, summary in rows.items():
            lines = wrap(summary, max(width - indent, 1), break_on_hyphens=False)
            if len(name) + 2 > indent:
                text.append(f"{name}\n", style="cyan")
            else:
                text.append(f"{name:<{indent}}", style="cyan").append(f"{lines.pop(0)}\n")
            text.append("".join(f"{'':<{indent}}{line}\n" for line in lines))
        text.append("\n")
    text.rstrip()
    return text
