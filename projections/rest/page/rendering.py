"""Rendering of pages: templates with escaping by default, addresses, and static files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from ledger.audit.report import text
from ledger.model.messages import moment, printable_line
from ledger.model.names import Identifier

if TYPE_CHECKING:
    from jinja2 import Environment

HOME: Final = "/"
"""Path of the first page."""

PREFIX: Final = "/ui"
"""Path that all others begin with."""

SECTIONS: Final[Mapping[str, str]] = {
    "": "Columns",
    "history": "History",
    "blame": "Blame",
    "diff": "Diff",
    "snapshots": "Snapshots",
    "refs": "Branches and tags",
    "partitions": "Partitions",
    "projections": "Projections",
}
"""Pages of a table: the last part of their path, and their name."""

_FOLDER: Final = Path(__file__).parent
_YEARS: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)


def ledger_url(**parameters: object) -> str:
    """Return the address of the first page.

    Example:
        >>> ledger_url(), ledger_url(q="a b", page=None)
        ('/', '/?q=a+b')
    """
    return HOME + _query(parameters)


def database_url(database: str, **parameters: object) -> str:
    """Return the address of the page of a database.

    Example:
        >>> database_url("shop", page=2)
        '/ui/databases/shop?page=2'
    """
    return f"{PREFIX}/databases/{quote(database, safe='')}{_query(parameters)}"


def table_url(identifier: Identifier, section: str = "", **parameters: object) -> str:
    """Return the address of a page of a table.

    Example:
        >>> table_url(Identifier("shop", "a b+c"), "diff", before="tag:v1")
        '/ui/tables/shop/a%20b%2Bc/diff?before=tag%3Av1'
    """
    names = "/".join(quote(each, safe="") for each in (identifier.database, identifier.name))
    last = f"/{section}" if section else ""
    return f"{PREFIX}/tables/{names}{last}{_query(parameters)}"


def _query(parameters: Mapping[str, object]) -> str:
    given = {key: value for key, value in parameters.items() if value not in {None, ""}}
    return f"?{urlencode(given)}" if given else ""


@lru_cache(maxsize=1)
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return the static files with their content types, by name."""
    types = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
    return {name: ((_FOLDER / name).read_bytes(), kind) for name, kind in types.items()}


def static_url(name: str) -> str:
    """Return the address of a static file, which changes with its contents."""
    digest = hashlib.sha256(static_files()[name][0]).hexdigest()[:12]
    return f"{PREFIX}/{name}?v={digest}"


def render(template: str, **values: Any) -> bytes:
    """Return a page as HTML.

    Every text is escaped; characters that are not printable, such as marks that change the
    direction of the text, are shown as `?`.
    """
    return _environment().get_template(f"{template}.html.jinja").render(values).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=_printable,
        loader=FileSystemLoader(_FOLDER / "templates"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "iso_time": _iso_time,
        "moment": moment,
        "name_parts": _name_parts,
        "number": "{:,}".format,
        "signed": "{:+,}".format,
        "text": text,
    }
    environment.globals |= {
        "SECTIONS": SECTIONS,
        "database_url": database_url,
        "ledger_url": ledger_url,
        "static_url": static_url,
        "table_url": table_url,
    }
    return environment


def _printable(value: object) -> object:
    from markupsafe import Markup

    if value is None:
        return ""
    return printable_line(value) if isinstance(value, str) and type(value) is not Markup else value


def _iso_time(time_millis: int) -> str:
    """Return a time for the attribute `datetime`; empty outside of years 1 to 9999."""
    shown = moment(time_millis)
    return f"{shown.replace(' ', 'T')}Z" if _YEARS.fullmatch(shown) else ""


def _name_parts(name: object) -> list[str]:
    """Split a name behind its dots and underscores, where a browser may break it."""
    return re.findall(r"[^._/]*[._/]+|[^._/]+", text(name))
