"""Configuration of the documentation site: `sphinx-build -W -c ledger/docs ledger OUTPUT`.

The sources are the Markdown pages next to this file, the records in the folder above, and the
docstrings of the public API. Nothing is loaded from another host when a page is viewed.
"""

from __future__ import annotations

from importlib.metadata import version as installed_version
from io import StringIO

from cyclopts import App
from rich.console import Console
from sphinx.application import Sphinx

from ledger.cli.app import app_for
from ledger.cli.commands import NAMES
from ledger.cli.families import command_names

project = "lakeledger"
author = "the lakeledger developers"
copyright = author  # noqa: A001 - Sphinx's name
version = release = installed_version("lakeledger")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**", "CHANGELOG.md", "DECISIONS.md", "FORMAT.md"]
exclude_patterns = ["docs/rubygems.json"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]

# Signatures stay short, and an example reads as in an interpreter.
default_role = "code"
autodoc_class_signature = "separated"
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
highlight_language = "python"

html_theme = "furo"
html_title = f"lakeledger {version}"
# The first page of the folder leads to the one of the documentation.
html_extra_path = ["root"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}


def setup(app: Sphinx) -> None:
    """Let the page of commands have the help text of each, as `lakeledger COMMAND --help`."""
    app.connect("source-read", _append_help_texts)


def _append_help_texts(_: Sphinx, page: str, source: list[str]) -> None:
    if page == "docs/command-line":
        for name in (*NAMES, *command_names()):
            source[0] += _help_section(app_for([name]), [name])


def _help_section(commands: App, words: list[str]) -> str:
    """Return a section with the help text of a command, and of those of its group."""
    printed = StringIO()
    commands.help_print(words, console=Console(file=printed, width=88, color_system=None))
    section = f"\n{'#' * (len(words) + 1)} {' '.join(words)}\n\n```text\n{printed.getvalue()}```\n"
    group = commands[words[0]] if len(words) == 1 else None
    inside = () if group is None else [each for each in group if not each.startswith("-")]
    return section + "".join(_help_section(commands, [*words, each]) for each in inside)
