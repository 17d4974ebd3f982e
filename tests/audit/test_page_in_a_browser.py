"""The audit page in a real browser: axe finds nothing, and no screen or sheet cuts anything off."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ledger
from tests.lakes import data_file, lake_on, memory, orders

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
    pytest.mark.skipif("LAKELEDGER_AXE" not in os.environ, reason="LAKELEDGER_AXE names no axe.js"),
]

# Old Chromium counts colour schemes so.
DARK = "--blink-settings=preferredColorScheme=0"
LOOKS: Mapping[str, tuple[str, ...]] = {
    "light": ("--window-size=1280,900",),
    "dark": ("--window-size=1280,900", DARK),
    "phone": ("--window-size=500,900",),
    "dark phone": ("--window-size=500,900", DARK),
    "print": ("--window-size=800,1100",),
}
ASKS = """
axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(found => {
  const said = document.createElement("pre");
  const names = each => [each.id, each.nodes.map(node => node.target.join(" "))];
  said.id = "found";
  said.textContent = JSON.stringify({
    rules: found.passes.length,
    violations: found.violations.map(names),
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    width: window.innerWidth,
    paper: getComputedStyle(document.body).backgroundColor,
  });
  document.body.append(said);
});
"""


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    """Return the page of a table whose columns came, went and were renamed, and of its ledger."""
    lake = lake_on(memory())
    table = orders(lake)
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")], message="begin")
    table.alter([ledger.RenameColumn(("amount",), "total")], author="ann", message="say it well")
    names = enumerate(("city", "zip"))
    fields = [{"id": nth, "name": name, "type": "STRING"} for nth, name in names]
    address = {"type": "ROW", "fields": fields}
    added = {"type": "addColumn", "fieldNames": ["addr"], "dataType": address}
    table.alter([{**added, "comment": "where " * 40}])
    table.alter([ledger.DropColumn(("addr", "zip"))], author="eve")
    table.create_tag("v1")
    table.create_branch("audit")
    table.branch("audit").append([data_file("c.parquet")])
    return {"table": table.report(), "ledger": lake.report()}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("page", ["table", "ledger"])
def test_axe_finds_nothing_and_nothing_is_cut_off(
    pages: Mapping[str, str], page: str, look: str, tmp_path: Path
) -> None:
    found = asked(pages[page], look, tmp_path)

    assert found["rules"] > 15
    assert found["violations"] == []
    assert found["wide"] <= 0
    channels = [int(each) for each in re.findall(r"\d+", found["paper"])[:3]]
    assert (max(channels) < 90) == look.startswith("dark")


def test_print_is_pages_that_hold_the_whole_text(pages: Mapping[str, str], tmp_path: Path) -> None:
    file, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(pages["table"], "utf-8")
    browser(tmp_path, f"--print-to-pdf={printed}", "--no-pdf-header-footer", file.as_uri())

    assert printed.read_bytes().startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) >= 2


def asked(page: str, look: str, folder: Path) -> dict[str, Any]:
    """Return what axe says of a page, and how it is shown."""
    axe = Path(os.environ["LAKELEDGER_AXE"]).read_text("utf-8")
    # The page itself lets no script run: a copy does. And it is shown as it is printed.
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    if look == "print":
        page = page.replace("@media print", "@media all")
    file = folder / "page.html"
    file.write_text(
        page.replace("</body>", f"<script>{axe}</script><script>{ASKS}</script></body>")
    )
    shown = browser(
        folder, *LOOKS[look], "--virtual-time-budget=20000", "--dump-dom", file.as_uri()
    )
    match = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert match is not None, shown[-2000:]
    answer: dict[str, Any] = json.loads(html.unescape(match[1]))
    return answer


def browser(folder: Path, *words: str) -> str:
    """Return what a browser prints that complains of nothing."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    ran = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={folder}/profile", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert "CONSOLE" not in ran.stderr, ran.stderr
    return ran.stdout
