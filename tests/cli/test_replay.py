"""`lakeledger replay`: shown step by step, and into what is wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKELEDGER_URL", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKELEDGER_AUTHOR", "ada")
    from ledger.cli import main

    for words in (
        ["init"],
        ["create", "shop"],
        ["create", "shop.orders", "--column", "id BIGINT", "--column", "addr STRING"],
        ["alter", "shop.orders", "--rename", "addr=address", "--message", "in full"],
        ["alter", "shop.orders", "--add", "zip STRING"],
    ):
        assert main(words) == 0
    return tmp_path


def test_steps_are_shown_with_author_message_and_the_resulting_table(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ledger.cli import main

    assert lake.exists()
    capsys.readouterr()
    assert main(["replay", "shop.orders", "--to", "1"]) == 0
    shown = capsys.readouterr().out
    assert "in full" in shown
    assert "addr STRING" in shown
    assert "zip" not in shown
    assert main(["replay", "shop.orders", "--output", "jsonl"]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["version"] for each in steps] == [0, 1, 2]
    assert steps[1]["differences"] == [
        {"what": "field 1", "before": "addr STRING", "after": "address STRING"}
    ]
    assert steps[0]["differences"] == []


def test_a_replay_is_written_as_files_a_ledger_or_lines(
    lake: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    import ledger
    from ledger.cli import main

    folder, second = lake / "iceberg", lake / "second"
    assert main(["replay", "shop.orders", "--to", "1", "--into", "iceberg", str(folder)]) == 0
    assert b"shop.orders at version 1, as iceberg files in" in capsysbinary.readouterr().out
    assert (folder / "metadata" / "v1.metadata.json").exists()
    assert not (lake / "lake" / "shop.db" / "orders" / "metadata").exists()
    assert main(["replay", "shop.orders", "--to", "-1", "--into-ledger", str(second)]) == 0
    assert ledger.open(str(second)).table("shop.orders").state.version == 1
    output = capsysbinary.readouterr().out
    assert b"shop.orders at version 1, as a ledger of its own in" in output
    assert main(["replay", "shop.orders", "--to", "1", "--lines"]) == 0
    lines = capsysbinary.readouterr().out
    assert lines.startswith(b'{"lakeledger":"export"')
    assert b"zip" not in lines


def test_a_replayed_ledger_says_which_tables_it_lacks_and_takes_them_from_the_original(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ledger.cli import main

    second = str(lake / "second")
    assert main(["create", "shop.other", "--column", "id BIGINT"]) == 0
    capsys.readouterr()
    assert main(["replay", "shop.orders", "--into-ledger", second, "--output", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["notCarried"] == ["shop.other"]
    remedy = "replay shop.other --into-ledger"
    assert "lists tables without logs: shop.other; bring" in shown.err
    assert main(["verify", "--ledger", second]) == 6
    assert "replay TABLE --into-ledger" in capsys.readouterr().err
    assert main(["show", "shop.other", "--ledger", second]) == 6
    assert f"{remedy} file://{second}" in capsys.readouterr().err

    assert main([*remedy.split(), f"file://{second}"]) == 0
    assert "without logs" not in capsys.readouterr().err
    assert main(["verify", "--ledger", second]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--into", "parquet", "x"], "parquet"),
        (["--to", "99"], "version 99"),
        (["--lines", "--into-ledger", "x"], "give one of"),
    ],
)
def test_an_impossible_replay_is_rejected(
    lake: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from ledger.cli import main

    assert lake.exists()
    assert main(["replay", "shop.orders", *words]) != 0
    assert said in capsys.readouterr().err


def test_lines_do_not_fill_a_screen(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ledger.cli import main

    assert lake.exists()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["replay", "shop.orders", "--to", "1", "--lines"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert "lakeledger replay ... --lines > FILE" in error
