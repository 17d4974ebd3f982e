"""The documentation site builds without a warning, and is complete without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from ledger.cli.commands import NAMES
from ledger.cli.families import command_names
from tests.programs import ROOT, run

DOCS = ROOT / "ledger" / "docs"
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""Elements that load something when a page is viewed, and the attribute that names it."""


class Page(HTMLParser):
    """Resources, links, ids and pictures of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        named = given.get(LOADED.get(tag, ""))
        if named:
            self.loaded.append(named)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if tag == "img":
            self.pictures.append(given)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = run(
        *("-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-d", folder / "doctrees"),
        *("-c", DOCS, ROOT / "ledger", folder / "html"),
        timeout_s=300,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_guide_is_a_page_of_the_site(site: Path) -> None:
    assert {path.stem for path in DOCS.glob("*.md")} <= {
        path.stem for path in (site / "docs").glob("*.html")
    }


def test_a_page_loads_nothing_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    named = [(path.name, each) for path, page in pages.items() for each in page.loaded]
    assert len(named) > 100
    assert [each for each in named if urlsplit(each[1]).netloc] == []
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//", styles) == []
    assert "@import" not in styles


def test_every_link_within_the_site_leads_to_a_place_that_exists(pages: dict[Path, Page]) -> None:
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append((path.name, link))
            elif parts.fragment and target in pages:
                is_known = unquote(parts.fragment) in pages[target].ids
                wrong += [] if is_known else [(path.name, link)]
    assert wrong == []


def test_every_picture_says_in_words_what_it_shows(pages: dict[Path, Page]) -> None:
    every = [each for page in pages.values() for each in page.pictures]
    # The theme's own, such as the signs of folded lists, are decoration.
    pictures = [each for each in every if "_images/" in (each["src"] or "")]
    assert len({each["src"] for each in pictures}) >= 3
    assert [each for each in pictures if len(each.get("alt") or "") < 20] == []


def test_the_help_text_of_every_command_is_on_the_site(site: Path) -> None:
    page = (site / "docs" / "command-line.html").read_text("utf-8")
    missing = [each for each in (*NAMES, *command_names()) if f'id="{each}"' not in page]
    assert missing == []


def test_the_docstring_of_every_public_name_is_on_the_site(site: Path) -> None:
    import ledger

    page = (site / "docs" / "python-api.html").read_text("utf-8")
    missing = [
        each
        for each in ledger.__all__
        if f'id="ledger.{each}"' not in page and f"errors.{each}" not in page
    ]
    assert missing == []


def test_the_site_has_the_version_of_the_package(site: Path) -> None:
    from importlib.metadata import version

    assert f"lakeledger {version('lakeledger')}" in (site / "docs" / "index.html").read_text()
