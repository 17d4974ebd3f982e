"""Tables in terminals of every width: whole words, never a letter a line."""

from __future__ import annotations

import io
import sys

import pytest

from ledger.cli.output import Cell, Screen
from tests.cli.conftest import Run

WIDE = [f"measure_{number:02}" for number in range(19)]


def shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
    columns: list[str],
    rows: list[tuple[Cell, ...]],
) -> list[str]:
    """Return a table's lines in a terminal that is so wide."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Screen().table(columns, rows)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_no_word_is_torn_however_narrow_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    rows: list[tuple[Cell, ...]] = [(9, "root@vm", "snapshot 2: OVERWRITE, -1,000 rows, -1 file")]
    lines = shown(monkeypatch, capsys, width, ["version", "author", "what happened"], rows)

    assert {"version", "author", "root@vm", "OVERWRITE,", "-1,000"} <= set(" ".join(lines).split())


def test_columns_that_do_not_fit_are_printed_below_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[tuple[Cell, ...]] = [(*map(str, range(19)),), (*["x"] * 18, None)]
    lines = shown(monkeypatch, capsys, 80, WIDE, rows)

    assert lines[1] == "measure_00  0"
    assert lines[19] == "measure_18  18"
    # What says nothing is left out.
    assert [line for line in lines if "measure_18" in line] == ["measure_18  18"]


def test_a_column_that_says_nothing_gives_way_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ["id", "column", "default", "comment"]
    rows: list[tuple[Cell, ...]] = [(1, "customer", None, "")]
    narrow = shown(monkeypatch, capsys, 25, columns, rows)
    wide = shown(monkeypatch, capsys, 80, columns, rows)

    assert [line.split() for line in narrow if "id" in line] == [["id", "column"]]
    assert [line.split() for line in wide if "id" in line] == [columns]


@pytest.mark.parametrize("line", [["--help"], ["show", "--help"], ["ls"], ["log", "shop.orders"]])
def test_no_color_means_nothing_but_text(
    shop: Run, monkeypatch: pytest.MonkeyPatch, line: list[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in shop(*line).out
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shop(*line)

    assert (plain.code, "\x1b" in plain.out) == (0, False)


def test_rows_that_fit_are_aligned_by_their_widths_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[tuple[Cell, ...]] = [("日本", 12345, "[b]x"), ("a b", None, ""), ("é", 7, "y\x1b")]
    expected = [
        "                        ",
        " name     rows   what   ",
        " ──────────────────── ",
        " 日本   12,345   [b]x   ",
        " a b                    ",
        " é           7   y?     ",
        "                        ",
    ]
    fitting = shown(monkeypatch, capsys, 22, ["name", "rows", "what"], rows)
    folded = shown(monkeypatch, capsys, 21, ["name", "rows", "what"], rows)

    assert [line.rstrip() for line in fitting] == [line.rstrip() for line in expected]
    assert len(folded) > len(expected)


def test_a_long_listing_is_written_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # A reader that has seen enough, such as `head`, ends it.
    written: list[str] = []

    class Ended(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            if len(written) > 100:
                raise BrokenPipeError
            return len(text)

    monkeypatch.setattr(sys, "stdout", Ended())
    with pytest.raises(BrokenPipeError):
        Screen().table(("name",), [(str(number),) for number in range(5_000)])
    assert all(len(each) < 100 for each in written)
