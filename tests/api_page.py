"""The page of the API, `ledger/docs/api.md`, made from docstrings.

`python -m tests.api_page` writes it anew.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MemberDescriptorType
from typing import Any

import ledger
from ledger import LedgerError
from ledger.events.commit import Record

PAGE = Path(__file__).parents[1] / "ledger" / "docs" / "api.md"

BEGINNING = """\
# The API

All of it comes with `import ledger`. `python -m pydoc ledger.Table`, or `help(ledger.Table)`, \
shows what a name takes, returns and raises, with an example of each method, and the tests run all \
of those. This page has the first line of each; `python -m tests.api_page` writes it anew.

What takes `**options` or `**commit` is a commit: `author=`, `message=`, `commit_id=`, \
`asked=`, `expect_version=`, `effective_time=`, `properties=`. What takes `**wanted` is narrowed \
as `Table.entries` is.
"""

HANDLES = (ledger.Ledger, ledger.Table, ledger.TableAt, ledger.TableBranch)


def page() -> str:
    """Return the page as it has to be."""
    public = {name: getattr(ledger, name) for name in ledger.__all__}
    changes = {name: each for name, each in public.items() if _is_a(each, Record)}
    errors = {name: each for name, each in public.items() if _is_a(each, LedgerError)}
    handles = {each.__name__: each for each in HANDLES}
    others = {
        name: each
        for name, each in public.items()
        if not {name} & (changes.keys() | errors.keys() | handles.keys())
    }
    parts = [
        BEGINNING,
        _table("What you begin with, and values", _plain(others)),
        *(_of_handle(name, each) for name, each in handles.items()),
        _table("Changes, for `alter` and `plan`", _plain(changes)),
        _table("Errors", _plain(errors)),
    ]
    return "\n".join(parts)


def _is_a(value: object, kind: type) -> bool:
    return isinstance(value, type) and issubclass(value, kind)


def _of_handle(name: str, handle: type) -> str:
    members = {each: value for each, value in vars(handle).items() if not each.startswith("_")}
    told = {
        each: (f"{each}{_taken(value)}", _first(value))
        for each, value in members.items()
        if not isinstance(value, MemberDescriptorType)
    }
    told |= {each: (each, what) for each, what in _attributes(handle)}
    return _table(f"`{name}`: {_first(handle)}", [told[each] for each in sorted(told)])


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"| `{name}` | {what} |" for name, what in rows)
    return "\n".join([f"## {title}", "", "| name | what it is |", "|---|---|", *lines, ""])


def _plain(members: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in members.items():
        yield name, _first(value) if inspect.getdoc(value) != _UNION else "Any change of a schema."


_UNION = inspect.getdoc(int | str)
_STARS: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def _taken(member: object) -> str:
    """Return what a method takes, without types; nothing for a property."""
    if not inspect.isfunction(member):
        return ""
    found, said = list(inspect.signature(member).parameters.values())[1:], []
    for number, each in enumerate(found):
        if each.kind is each.KEYWORD_ONLY and not any(
            before.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL} for before in found[:number]
        ):
            said.append("*")
        stars = _STARS.get(each.kind, "")
        said.append(f"{stars}{each.name}{'' if each.default is each.empty else '=...'}")
    return f"({', '.join(said)})"


def _attributes(handle: type) -> Iterator[tuple[str, str]]:
    """Yield what a class's docstring says of its attributes."""
    _, _, said = (inspect.getdoc(handle) or "").partition("Attributes:\n")
    for each in re.finditer(r"^    (\w+): (.*(?:\n {8}.*)*)", said, re.MULTILINE):
        yield each[1], " ".join(each[2].split())


def _first(value: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    said = inspect.getdoc(value) or ""
    return " ".join(said.split("\n\n", 1)[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
