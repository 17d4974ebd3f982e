"""The page in a real browser: axe finds nothing, nothing is cut off, the keyboard is enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import ledger
from ledger import Ledger
from tests.browser import Scheme, Tab, axe_script, opened_tab
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.rest.page.page_client import EVERY_PAGE, ORDERS, page_client

LOOKS: Mapping[str, tuple[Scheme, int]] = {
    "light": ("light", 1280),
    "dark": ("dark", 1280),
    "phone": ("light", 360),
    "dark phone": ("dark", 360),
}
ERRORS = (f"{ORDERS}?at=someday", "/ui/tables/shop/ordrs")
ENTER, TAB = ("Enter", 13), ("Tab", 9)
AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => ({
    rules: found.passes.length,
    violations: found.violations.map(each => [each.id, each.nodes.map(node => node.target)]),
}))"""
LAYOUT = """({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    cut: [...document.querySelectorAll("main *")].filter(
        each => each.getBoundingClientRect().right > window.innerWidth + 1
            && each.closest(".scroll") === null).map(each => each.outerHTML.slice(0, 80)),
    paper: getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number),
    styles: document.styleSheets.length,
})"""


@pytest.fixture(scope="module")
def lake() -> Ledger:
    """Return a ledger whose table has all that pages show, with long names and texts."""
    made = lake_on(memory())
    made.create_database("a_database_with_a_name_that_is_" + "long_" * 20)
    table = orders(made)
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")], message="begin")
    table.alter([ledger.RenameColumn(("amount",), "total")], author="ann", message="word " * 50)
    table.alter([ledger.AddColumn(("n" * 120,), "STRING"), ledger.SetOption("k" * 90, "v" * 250)])
    table.alter([ledger.DropColumn(("total",))], author="e" * 80, message="m" * 280)
    table.create_tag("v1")
    table.create_branch("audit")
    table.append([data_file("c.parquet")])
    table.alter([ledger.SetOption("ledger.follow", "iceberg")])
    return made


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with opened_tab(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def uri(lake: Ledger) -> Iterator[str]:
    with page_client(lake) as client:
        yield str(client.base_url).rstrip("/")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_nothing_is_cut_off(tab: Tab, uri: str, look: str) -> None:
    scheme, width = LOOKS[look]
    axe = axe_script()
    tab.look(scheme, width)
    for path in (*EVERY_PAGE, *ERRORS):
        tab.open(uri + path)
        said = [each for each in tab.messages if "status of 40" not in each]
        layout: Mapping[str, Any] = tab.evaluate(LAYOUT)
        tab.evaluate(f"{axe};0")
        found: Mapping[str, Any] = tab.evaluate(AXE)

        assert said == [], path
        assert found["violations"] == [], path
        assert found["rules"] > 15, path
        assert (layout["wide"], layout["cut"]) == (0, []), path
        assert (max(layout["paper"]) < 90) == (scheme == "dark"), path
        assert layout["styles"] == 1, path


def test_the_content_policy_blocks_scripts_and_styles_of_others(tab: Tab, uri: str) -> None:
    tab.open(uri + ORDERS)
    tab.evaluate(
        """const script = document.createElement("script");
        script.textContent = "window.wasRun = true";
        document.head.append(script);
        document.body.setAttribute("style", "display: none");"""
    )

    assert tab.evaluate("window.wasRun === undefined") is True
    assert tab.evaluate("getComputedStyle(document.body).display") == "block"


def test_the_keyboard_reaches_the_content_the_slider_and_a_table(tab: Tab, uri: str) -> None:
    tab.look("light", 1280)
    tab.open(uri + ORDERS)
    tab.press(*TAB)
    assert tab.evaluate("document.activeElement.className") == "skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") == 0
    tab.press(*ENTER)
    assert tab.evaluate("document.activeElement.id") == "main"

    focused: list[str] = []
    while (now := _next_focus(tab)) is not None:
        focused.append(now)
    assert {"version", "at", "scroll"} <= {*focused}

    tab.evaluate("document.getElementById('version').focus()")
    tab.press("ArrowLeft", 37)
    tab.press("ArrowLeft", 37)
    newest = int(tab.evaluate("document.getElementById('version').max"))
    tab.press(*TAB)
    tab.press_and_load(*ENTER)
    assert tab.evaluate("location.search") == f"?version={newest - 2}"
    assert tab.evaluate("document.getElementById('travel').textContent") == (
        f"As of version {newest - 2}"
    )


def _next_focus(tab: Tab) -> str | None:
    """Press Tab, and return the id or the class of the element with the focus; None at the end."""
    tab.press(*TAB)
    if tab.evaluate("document.activeElement === document.body"):
        return None
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    return str(tab.evaluate("document.activeElement.id || document.activeElement.className"))
