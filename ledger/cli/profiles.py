"""Profiles: ledgers that a user gave names to, in a file of his own.

    profile = "work"                        # what is used where nothing else is said

    [work]
    ledger = "s3://lake/ledger"
    author = "ada"
    storage-options = { endpoint_url = "http://localhost:8333" }

    [home]
    ledger = "~/lake"

The file is `lakeledger.toml` in `$XDG_CONFIG_HOME` or `~/.config`, or what `LAKELEDGER_CONFIG`
says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ledger.cli.exits import UsageError
from ledger.locations import is_absolute
from ledger.model.messages.similar import meant

_KEYS = ("ledger", "author", "storage-options")


@frozen
class Profile:
    """A ledger by name.

    Attributes:
        name: What the user calls it.
        ledger: The ledger's root.
        author: Who commits when a command does not say; None: `user@host`.
        storage_options: For the store.
    """

    name: str
    ledger: str
    author: str | None = None
    storage_options: Mapping[str, Any] = field(factory=dict, repr=False)


def profile_file() -> Path:
    """Return where the user's profiles are."""
    said = os.environ.get("LAKELEDGER_CONFIG")
    if said:
        return Path(said)
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "lakeledger.toml"


def profile_names() -> list[str]:
    """Return the names of the user's profiles, sorted; none where there is no file."""
    return sorted(_tables(_document(profile_file())))


def find_profile(name: str | None) -> Profile | None:
    """Return a profile; the one that the file says is used, when no name is given.

    Raises:
        UsageError: There is none of that name, or the file cannot be read; the message names the
            file and what is wrong.
    """
    file = profile_file()
    document = _document(file)
    wanted = document.get("profile") if name is None else name
    if wanted is None:
        return None
    tables = _tables(document)
    if not isinstance(wanted, str) or wanted not in tables:
        there = meant(str(wanted), sorted(tables)) if tables else "there is none yet"
        raise UsageError(f"{file} has no profile {wanted!r}; {there}")
    return _profile(file, wanted, tables[wanted])


def _document(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _tables(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: value for name, value in document.items() if isinstance(value, dict)}


def _profile(file: Path, name: str, said: Mapping[str, Any]) -> Profile:
    here = f"profile {name} of {file}"
    for each in said:
        if each not in _KEYS:
            raise UsageError(f"{here} says {each!r}; {meant(each, _KEYS)}")
    root, author = said.get("ledger"), said.get("author")
    options = said.get("storage-options", {})
    if not isinstance(root, str) or not root:
        raise UsageError(f'{here} does not say where the ledger is: ledger = "FOLDER or URL"')
    if not isinstance(author, str | None) or not isinstance(options, dict):
        raise UsageError(f"{here}: author is a text, and storage-options a table")
    place = os.path.expanduser(root)  # noqa: PTH111 - of a URL, a path would lose a slash
    if not is_absolute(place):
        raise UsageError(f"{here}: {root} is relative, and to what nobody knows; write it whole")
    return Profile(name, place, author, options)
